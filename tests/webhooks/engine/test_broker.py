"""The clock: what is handed out, and when."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone
from django_q.models import OrmQ, Task
from django_q.monitor import save_task
from django_q.signing import SignedPackage
from django_q.tasks import async_task
from pytest_django import Settings

from tests.factories import Scene
from webhooks.engine.broker import Clock, ClockBroker, Package
from webhooks.models import Delivery
from webhooks.publishing import wake_engine

DELIVER = "webhooks.engine.tasks.deliver"
TICK = "webhooks.engine.heartbeat.probe"


def names(packages: list[Package] | None) -> list[str]:
    return [SignedPackage.loads(package)["func"] for _, package in packages or []]


@pytest.fixture
def no_ticks(settings: Settings) -> None:
    settings.CLOCK_TICKS = {}


@pytest.fixture
def broker(no_ticks: None, transactional_db: None) -> Iterator[ClockBroker]:
    broker = ClockBroker("console")
    broker.dequeue()  # the first call looks at everything once
    yield broker
    connection.close()


def first_of(broker: ClockBroker) -> list[str]:
    """What the next calls hand out, as soon as they hand out anything."""
    for _ in range(40):
        if handed := names(broker.dequeue()):
            return handed
    raise AssertionError("nothing was handed out")


def test_a_due_delivery_is_handed_out_as_a_wake_up(broker: ClockBroker, scene: Scene) -> None:
    scene.dispatched()
    assert first_of(broker) == [DELIVER]


def test_nothing_due_hands_out_nothing(broker: ClockBroker, scene: Scene) -> None:
    assert [names(broker.dequeue()) for _ in range(3)] == [[], [], []]


def test_a_far_retry_wakes_nobody(broker: ClockBroker, scene: Scene) -> None:
    delivery = scene.dispatched().delivery
    assert delivery
    first_of(broker)
    Delivery.objects.filter(pk=delivery.pk).update(next_attempt_at=Now() + timedelta(hours=1))
    assert [names(broker.dequeue()) for _ in range(3)] == [[], [], []]


def test_overdue_work_is_handed_out_again_until_it_is_taken(
    broker: ClockBroker, scene: Scene
) -> None:
    """A wake-up that is lost with its worker costs a moment, not a delivery."""
    scene.dispatched()
    assert [first_of(broker) for _ in range(3)] == [[DELIVER]] * 3


def test_many_notifications_at_once_become_few_wake_ups(broker: ClockBroker, scene: Scene) -> None:
    for _ in range(50):
        scene.dispatched()
    Delivery.objects.update(next_attempt_at=Now() + timedelta(hours=1))
    for _ in range(50):
        wake_engine()
    assert names(broker.dequeue()) == []


def test_each_tick_is_handed_out_once_a_period(settings: Settings, transactional_db: None) -> None:
    settings.CLOCK_TICKS = {TICK: 3600.0}
    clock = Clock()
    assert TICK in names(clock.wait())
    assert TICK not in names(clock.wait())


def test_ordinary_tasks_come_through_too(broker: ClockBroker) -> None:
    async_task("math.floor", 1.5, broker=broker)
    assert first_of(broker) == ["math.floor"]


class Renamed:
    """What a task of an older release may hold."""


def test_a_task_that_cannot_be_read_is_dropped_and_holds_up_no_other(
    broker: ClockBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """django-q2's pusher would end, and end again as often as the task is handed out."""
    broker.enqueue(SignedPackage.dumps({"func": "math.floor", "args": (Renamed(),)}))
    monkeypatch.delattr("tests.webhooks.engine.test_broker.Renamed")
    broker.enqueue("neither signed nor packed")
    async_task("math.floor", 1.5, broker=broker)

    assert first_of(broker) == ["math.floor"]
    assert OrmQ.objects.count() == 1
    assert caplog.text.count("cannot be read: dropped") == 2


def test_work_that_was_never_announced_is_found_in_the_table(
    broker: ClockBroker, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No notification: as after a crash between the two, or from a database that was restored."""
    monkeypatch.setattr("webhooks.publishing.wake_engine", lambda: None)
    scene.dispatched()
    assert not any(True for _ in broker._clock._listener.notifies(timeout=0))  # type: ignore[union-attr]
    assert first_of(broker) == [DELIVER]


def test_what_was_missed_for_half_a_day_is_handed_out_once(
    settings: Settings, transactional_db: None
) -> None:
    settings.CLOCK_TICKS = {TICK: 3600.0}
    clock = Clock()
    clock._ticks[TICK] -= 12 * 3600
    assert [names(clock.wait()).count(TICK) for _ in range(3)] == [1, 0, 0]


def test_a_clock_of_before_the_fork_is_not_used_after_it(broker: ClockBroker, scene: Scene) -> None:
    """Two processes on one connection would take each other's answers."""
    assert broker._clock
    broker._clock.process -= 1
    inherited = broker._clock._listener.info.backend_pid
    scene.dispatched()
    assert first_of(broker) == [DELIVER]
    assert broker._clock._listener.info.backend_pid != inherited


def test_a_tick_that_fails_each_time_leaves_one_row_and_no_arguments(
    settings: Settings, transactional_db: None
) -> None:
    """django-q2 keeps every failure for ever, but one row for each id."""
    settings.CLOCK_TICKS = {TICK: 0.0}
    clock = Clock()
    for _ in range(3):
        [task] = [SignedPackage.loads(payload) for _, payload in clock.wait()]
        task |= {"success": False, "result": "it failed", "stopped": timezone.now()}
        save_task(task, ClockBroker("console"))
    [row] = Task.objects.all()
    assert (row.args, row.kwargs, row.attempt_count) == ((), {}, 3)


def test_a_database_that_cuts_the_connection_costs_one_empty_round(
    broker: ClockBroker, scene: Scene
) -> None:
    assert broker._clock
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(%s)", [broker._clock._listener.info.backend_pid]
        )
    scene.dispatched()
    assert first_of(broker) == [DELIVER]
