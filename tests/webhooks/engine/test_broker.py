"""The clock: what is handed out, and when."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now
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
