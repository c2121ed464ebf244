"""Nothing is ever left behind: whatever state a row is found in, something moves it on by itself."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from unittest.mock import patch

import pytest
from django.db.models.functions import Now

from commands import lifecycle, settling
from organizations.clock import database_now
from tests import factories
from tests.factories import WORKER, Scene, attempts, delivery_of, fresh, record
from webhooks.engine import claims, heartbeat, tasks
from webhooks.models import Attempt, Delivery, Endpoint, Heartbeat

LONG_AGO = timedelta(days=30)


def expire_leases() -> None:
    Delivery.objects.filter(lease_until__isnull=False).update(lease_until=Now() - LONG_AGO)


def test_an_attempt_whose_worker_died_is_lost_and_the_next_one_follows(scene: Scene) -> None:
    command, attempt = scene.on_the_wire()
    expire_leases()
    before = database_now()

    assert tasks.sweep_leases() == 1

    [lost], delivery = attempts(command), delivery_of(command)
    assert lost.verdict == "lost"
    assert lost.started_at is None
    assert lost.finished_at
    assert before <= lost.finished_at <= database_now()
    assert "unknown" in lost.error
    assert (delivery.state, delivery.lease_until) == ("pending", None)
    assert delivery.next_attempt_at == lost.finished_at + timedelta(seconds=5)
    assert factories.claim(command).number == attempt.number + 1
    assert fresh(command).state == "queued"


def test_an_attempt_whose_lease_runs_is_left_alone(scene: Scene) -> None:
    command, attempt = scene.on_the_wire()

    assert tasks.sweep_leases() == 0

    assert record(factories.answer(attempt, 200)) == 1
    assert fresh(command).state == "delivered"


def test_a_lost_last_attempt_ends_the_delivery(scene: Scene) -> None:
    command = scene.dispatched()
    factories.fail_with(command, [503] * 4)
    factories.claim(command)
    expire_leases()

    tasks.sweep_leases()

    assert fresh(command).failure_reason == "attempts_exhausted"


def test_a_sweep_takes_a_bounded_number_and_the_oldest_first(scene: Scene) -> None:
    deliveries = [scene.send() for _ in range(5)]
    for minutes, delivery in enumerate(deliveries):
        factories.claim(delivery)
        Delivery.objects.filter(pk=delivery.pk).update(
            lease_until=Now() - timedelta(minutes=minutes + 1)
        )

    with patch.object(tasks, "SWEEP_LIMIT", 2):
        assert [tasks.sweep_leases() for _ in range(4)] == [2, 2, 1, 0]

    rows = Attempt.objects.order_by("finished_at").values_list("delivery_id", flat=True)
    assert list(rows)[-1] == deliveries[0].pk


# --- rows made by hand --------------------------------------------------------------------------


def waiting(scene: Scene) -> Delivery:
    delivery = scene.send()
    Delivery.objects.filter(pk=delivery.pk).update(next_attempt_at=Now() - LONG_AGO)
    return delivery


def in_flight(scene: Scene) -> Delivery:
    delivery = scene.send()
    factories.claim(delivery)
    expire_leases()
    return delivery


def leased_without_an_attempt(scene: Scene) -> Delivery:
    delivery = scene.send()
    Delivery.objects.filter(pk=delivery.pk).update(
        next_attempt_at=None, lease_until=Now() - LONG_AGO
    )
    return delivery


def leased_after_its_attempt_ended(scene: Scene) -> Delivery:
    delivery = scene.send()
    factories.fail_with(delivery, [503])
    Delivery.objects.filter(pk=delivery.pk).update(
        next_attempt_at=None, lease_until=Now() - LONG_AGO
    )
    return delivery


def retracted_in_flight(scene: Scene) -> Delivery:
    command, _ = scene.on_the_wire()
    lifecycle.retract(scene.operator, command.pk)
    expire_leases()
    return delivery_of(command)


def retracted_and_leased_without_an_attempt(scene: Scene) -> Delivery:
    command = scene.dispatched()
    lifecycle.retract(scene.operator, command.pk)
    Delivery.objects.filter(command_id=command.pk).update(lease_until=Now() - LONG_AGO)
    return delivery_of(command)


def waiting_at_a_disabled_endpoint(scene: Scene) -> Delivery:
    delivery = waiting(scene)
    Endpoint.objects.filter(pk=scene.endpoint.pk).update(enabled=False, disabled_at=Now())
    return delivery


def orphaned_at_a_disabled_endpoint(scene: Scene) -> Delivery:
    delivery = leased_without_an_attempt(scene)
    Endpoint.objects.filter(pk=scene.endpoint.pk).update(enabled=False, disabled_at=Now())
    return delivery


STUCK: list[Callable[[Scene], Delivery]] = [
    waiting,
    in_flight,
    leased_without_an_attempt,
    leased_after_its_attempt_ended,
    retracted_in_flight,
    retracted_and_leased_without_an_attempt,
    waiting_at_a_disabled_endpoint,
    orphaned_at_a_disabled_endpoint,
]


@pytest.mark.parametrize("make", STUCK)
def test_a_row_left_in_any_state_long_ago_gets_to_its_end_by_itself(
    scene: Scene, make: Callable[[Scene], Delivery]
) -> None:
    """The clock alone: sweeps and claims, with a receiver that answers every attempt."""
    delivery = make(scene)

    for _ in range(4):
        tasks.sweep_leases()
        factories.make_due(delivery.pk)
        record(*(factories.answer(attempt, 200) for attempt in claims.claim(10, WORKER)))

    delivery = delivery_of(delivery)
    assert delivery.state in ("delivered", "failed", "cancelled")
    assert (delivery.next_attempt_at, delivery.lease_until) == (None, None)
    assert all(attempt.finished_at for attempt in attempts(delivery))


def test_a_command_left_delivered_long_ago_is_timed_out(scene: Scene) -> None:
    command = scene.overdue()

    settling.time_out_overdue()

    assert fresh(command).state == "timed_out"


def test_commands_stranded_at_a_disabled_endpoint_fail_with_their_deliveries(
    scene: Scene,
) -> None:
    command = scene.dispatched()
    Endpoint.objects.filter(pk=scene.endpoint.pk).update(enabled=False, disabled_at=Now())

    tasks.sweep_leases()

    assert fresh(command).state == "failed"
    assert fresh(command).failure_reason == "endpoint_disabled"


def test_the_heartbeat_is_the_database_s_time_and_one_row_a_cluster(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLUSTER_ID", "one")
    heartbeat.beat()
    first = Heartbeat.objects.get(cluster="one")
    heartbeat.beat()

    again = Heartbeat.objects.get()
    assert again.beat_at > first.beat_at
    assert again.started_at == first.started_at
