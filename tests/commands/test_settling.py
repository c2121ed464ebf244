"""What the engine and the clock do to commands: delivered, failed, timed out."""

from __future__ import annotations

from datetime import timedelta
from unittest.mock import patch

import pytest

from commands import lifecycle, settling
from commands.rules.reports import Outcome
from commands.rules.states import State
from organizations.clock import database_now
from tests import factories
from tests.factories import Scene, attempts, delivery_of, fresh, lines, record, story
from tests.statements import counted
from webhooks import endpoints
from webhooks.models import Delivery


def test_a_delivered_command_waits_for_its_report(scene: Scene) -> None:
    command, attempt = scene.on_the_wire()
    finished_at = database_now()

    record(factories.answer(attempt, 204, finished_at=finished_at))

    command = fresh(command)
    assert command.state == State.DELIVERED
    assert command.delivered_at == finished_at
    assert command.settled_at is None
    line = lines(command)[-1]
    assert (line.kind, line.from_state, line.to_state) == ("delivered", "queued", "delivered")
    assert (line.user, line.via) == (None, "engine")


@pytest.mark.parametrize(
    ("statuses", "reason"),
    [([503] * 5, "attempts_exhausted"), ([400], "refused"), ([503, 301], "refused")],
)
def test_a_command_fails_with_its_delivery_and_says_why(
    scene: Scene, statuses: list[int], reason: str
) -> None:
    command = scene.dispatched()

    factories.fail_with(command, statuses)

    command, [*_, last] = fresh(command), attempts(command)
    assert (command.state, command.failure_reason) == (State.FAILED, reason)
    assert command.settled_at == last.finished_at
    assert delivery_of(command).failure_reason == reason
    assert (lines(command)[-1].kind, lines(command)[-1].reason) == ("failed", reason)


def test_a_command_that_is_retried_stays_queued(scene: Scene) -> None:
    command = scene.dispatched()

    factories.fail_with(command, [503, 429, 500, 503])

    assert fresh(command).state == State.QUEUED
    assert story(command) == ["issued", "dispatched"]


def test_commands_fail_with_their_endpoint(scene: Scene) -> None:
    waiting = [scene.dispatched() for _ in range(3)]
    factories.fail_with(waiting[2], [503])

    endpoints.disable(scene.owner, scene.endpoint.pk, "broken")

    for command in waiting:
        command = fresh(command)
        assert (command.state, command.failure_reason) == (State.FAILED, "endpoint_disabled")
        assert lines(command)[-1].reason == "endpoint_disabled"


def test_an_old_command_does_not_fire_when_its_endpoint_is_enabled_again(scene: Scene) -> None:
    command = scene.dispatched()
    endpoints.disable(scene.owner, scene.endpoint.pk, "broken")

    endpoints.enable(scene.owner, scene.endpoint.pk)

    assert fresh(command).state == State.FAILED
    assert delivery_of(command).state == Delivery.State.FAILED


def test_a_delivery_after_the_deadline_times_out_at_once_and_says_why(scene: Scene) -> None:
    command, attempt = scene.on_the_wire(ack_timeout_s=0)

    record(factories.answer(attempt, 200))

    command = fresh(command)
    assert command.state == State.TIMED_OUT
    assert command.delivered_at
    assert command.settled_at
    assert story(command)[-2:] == ["delivered", "timed_out"]
    assert lines(command)[-1].reason == "delivered_after_deadline"


def test_a_delivery_exactly_at_the_deadline_is_too_late(scene: Scene) -> None:
    command, attempt = scene.on_the_wire(ack_timeout_s=30)

    record(factories.answer(attempt, 200, finished_at=command.ack_deadline))

    assert fresh(command).state == State.TIMED_OUT


def test_the_sweep_times_out_what_is_overdue_and_nothing_else(scene: Scene) -> None:
    overdue, waiting, queued = scene.overdue(), scene.delivered(), scene.dispatched(ack_timeout_s=0)

    assert settling.time_out_overdue() == 1

    assert fresh(overdue).state == State.TIMED_OUT
    assert fresh(waiting).state == State.DELIVERED
    assert fresh(queued).state == State.QUEUED
    line = lines(overdue)[-1]
    assert (line.kind, line.from_state, line.to_state) == ("timed_out", "delivered", "timed_out")
    assert (line.reason, line.via) == ("deadline_passed", "engine")


def test_the_sweep_has_nothing_to_do_twice(scene: Scene) -> None:
    scene.overdue()

    assert settling.time_out_overdue() == 1
    assert settling.time_out_overdue() == 0


def test_a_sweep_takes_a_bounded_number_and_the_longest_overdue_first(scene: Scene) -> None:
    first, second, third = (scene.overdue() for _ in range(3))

    with patch.object(settling, "SWEEP_LIMIT", 2):
        assert settling.time_out_overdue() == 2
        assert fresh(third).state == State.DELIVERED
        assert settling.time_out_overdue() == 1

    assert {fresh(c).state for c in (first, second, third)} == {State.TIMED_OUT}


def test_many_commands_settle_in_one_recording(scene: Scene) -> None:
    wires = [scene.on_the_wire() for _ in range(6)]
    statuses = [200, 400, 503, 200, 404, 200]

    record(*(factories.answer(a, s) for (_, a), s in zip(wires, statuses, strict=True)))

    states = [fresh(command).state for command, _ in wires]
    assert states == ["delivered", "failed", "queued", "delivered", "failed", "delivered"]


def test_a_batch_goes_each_commands_own_way(scene: Scene) -> None:
    late, early, plain = (scene.on_the_wire(ack_timeout_s=s) for s in (0, 300, 300))
    lifecycle.acknowledge(scene.operator, early[0].pk, Outcome.REJECTION)

    record(*(factories.answer(attempt, 200) for _, attempt in (late, early, plain)))

    states = [fresh(command).state for command, _ in (late, early, plain)]
    assert states == ["timed_out", "nacked", "delivered"]


def test_the_number_of_queries_does_not_grow_with_the_batch(scene: Scene) -> None:
    def queries_of(count: int) -> int:
        outcomes = [factories.answer(scene.on_the_wire()[1], 200) for _ in range(count)]
        with counted() as captured:
            record(*outcomes)
        return len(captured)

    assert queries_of(7) == queries_of(1)


def test_a_default_that_changes_later_re_times_nothing(scene: Scene) -> None:
    command = scene.delivered()
    deadline = command.ack_deadline

    with patch.object(lifecycle, "ACK_TIMEOUT_DEFAULT_S", 30):
        settling.time_out_overdue()

    assert fresh(command).ack_deadline == deadline
    assert deadline
    assert deadline > database_now() + timedelta(seconds=250)
