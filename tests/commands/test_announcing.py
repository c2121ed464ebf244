"""Each change of a command's state is one event, in the transaction that makes it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from commands import lifecycle, settling
from commands.api.serializers import CommandSerializer
from commands.errors import ReportRefused
from commands.models import Command
from commands.rules.reports import Outcome as Report
from commands.rules.states import State
from organizations.clock import rfc3339
from tests import factories
from tests.factories import Scene, answer, claim, fresh, record
from tests.racing import race
from tests.statements import counted
from webhooks import endpoints, feed
from webhooks.models import Event


def told(scene: Scene) -> list[Event]:
    """What was published, in the order of the feed."""
    return list(feed.read(scene.organization.pk, 0, 200).events)


def types(scene: Scene, command: Command) -> list[str]:
    """The types of what was told of the command."""
    mine = [e for e in told(scene) if e.value["data"]["command"]["id"] == str(command.pk)]
    return [event.type for event in mine]


TOLD = {
    State.LOGGED: [],
    State.QUEUED: [],
    State.DELIVERED: ["command.delivered"],
    State.FAILED: ["command.failed"],
    State.ACKED: ["command.delivered", "command.acked"],
    State.NACKED: ["command.delivered", "command.nacked"],
    State.TIMED_OUT: ["command.delivered", "command.timed_out"],
    State.RETRACTED: ["command.retracted"],
}


@pytest.mark.parametrize("state", State)
def test_each_step_of_a_command_s_life_is_told_once(scene: Scene, state: State) -> None:
    command = scene.in_state(state)

    assert types(scene, command) == TOLD[state]


@pytest.mark.parametrize("state", [state for state in State if state != State.RETRACTED])
def test_a_retraction_is_told_whatever_was_before_and_only_once(scene: Scene, state: State) -> None:
    command = scene.in_state(state)

    for _ in range(2):
        lifecycle.retract(scene.operator, command.pk, "changed our mind")

    assert types(scene, command) == [*TOLD[state], "command.retracted"]
    assert told(scene)[-1].value["data"]["command"]["retractionReason"] == "changed our mind"


@pytest.mark.parametrize("state", [s for s in State if s not in (State.LOGGED, State.QUEUED)])
def test_what_is_told_is_the_command_as_the_api_shows_it(scene: Scene, state: State) -> None:
    command = scene.in_state(state)

    shown = CommandSerializer(Command.objects.get(pk=command.pk)).data
    facts = told(scene)[-1].value["data"]["command"]
    assert facts == {name: shown[name] for name in facts}
    assert shown.keys() - facts.keys() == {
        *("parameters", "issuedBy", "retractedBy", "retractedAt", "attempts", "nextAttemptAt")
    }


def test_an_event_has_the_time_of_its_line_on_the_timeline(scene: Scene) -> None:
    command = scene.in_state(State.ACKED)

    at = {line.kind: line.at for line in factories.lines(command)}
    for event in told(scene):
        assert event.value["timestamp"] == rfc3339(at[event.type.removeprefix("command.")])


def test_an_early_report_is_told_after_the_delivery_it_came_before(scene: Scene) -> None:
    command, attempt = scene.on_the_wire()
    lifecycle.acknowledge(scene.operator, command.pk, Report.SUCCESS)
    assert told(scene) == []

    record(answer(attempt, 200))

    delivered, acked = told(scene)
    assert (delivered.type, acked.type) == ("command.delivered", "command.acked")
    first, second = (event.value["data"]["command"] for event in (delivered, acked))
    assert (first["state"], first["settledAt"]) == ("delivered", None)
    assert (second["state"], second["settledAt"]) == ("acked", first["deliveredAt"])


def test_a_command_delivered_too_late_is_told_as_delivered_and_as_timed_out(scene: Scene) -> None:
    command, attempt = scene.on_the_wire(ack_timeout_s=0)

    record(answer(attempt, 200))

    assert types(scene, command) == ["command.delivered", "command.timed_out"]


def test_a_report_that_finds_the_deadline_passed_tells_that_it_passed(scene: Scene) -> None:
    command = scene.overdue()

    for _ in range(2):
        with pytest.raises(ReportRefused):
            lifecycle.acknowledge(scene.operator, command.pk, Report.SUCCESS)

    assert types(scene, command) == ["command.delivered", "command.timed_out"]


def test_a_repeated_report_is_told_once(scene: Scene) -> None:
    command = scene.delivered()

    for _ in range(2):
        lifecycle.acknowledge(scene.operator, command.pk, Report.REJECTION)

    assert types(scene, command) == ["command.delivered", "command.nacked"]


def test_a_delivery_after_a_retraction_is_not_told(scene: Scene) -> None:
    command, attempt = scene.on_the_wire()
    lifecycle.retract(scene.operator, command.pk)

    record(answer(attempt, 200))

    assert types(scene, command) == ["command.retracted"]


def test_a_failed_attempt_is_nobody_s_business_until_the_last(scene: Scene) -> None:
    command = scene.dispatched()
    factories.fail_with(command, [503] * 4)
    assert told(scene) == []

    factories.fail_with(command, [503])

    assert types(scene, command) == ["command.failed"]
    facts = told(scene)[0].value["data"]["command"]
    assert facts["failureReason"] == fresh(command).failure_reason != ""


def test_the_delivery_of_an_event_is_not_told(scene: Scene) -> None:
    """Or the events of events would never end."""
    scene.another_endpoint("event", event_types=["*"])
    for status in (200, 400):
        [delivery] = scene.published().deliveries.all()
        factories.fail_with(delivery, [status] * (1 if status == 200 else 3))

    assert {event.type for event in told(scene)} == {"order.created"}


def test_a_disabled_endpoint_is_told_of_to_the_others_with_what_it_ended(scene: Scene) -> None:
    scene.dispatched()
    itself, other = (scene.another_endpoint("event", event_types=["endpoint.*"]) for _ in range(2))
    endpoints.disable(scene.owner, itself.pk, "maintenance")
    endpoints.disable(scene.owner, scene.endpoint.pk, "maintenance")

    types_told = [event.type for event in told(scene)]
    assert sorted(types_told) == ["command.failed", "endpoint.disabled", "endpoint.disabled"]
    disabled = [event for event in told(scene) if event.type == "endpoint.disabled"]
    assert disabled[0].value["data"]["endpoint"]["id"] == str(itself.pk)
    assert {d.endpoint for e in disabled for d in e.deliveries.all()} == {other}


def test_a_sweep_of_many_deadlines_takes_as_many_statements_as_of_one(scene: Scene) -> None:
    scene.another_endpoint("event", event_types=["command.timed_out"])

    def statements(count: int) -> int:
        for _ in range(count):
            scene.overdue()
        with counted() as captured:
            assert settling.time_out_overdue() == count
        return len(captured)

    assert statements(6) == statements(1)
    assert [e.type for e in told(scene)].count("command.timed_out") == 7


def test_where_nobody_subscribes_telling_costs_a_recorded_batch_two_statements(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.delivered()  # an endpoint that has answered gets several attempts at once

    def statements() -> int:
        outcomes = [answer(claim(scene.dispatched()), 200) for _ in range(3)]
        with counted() as captured:
            record(*outcomes)
        return len(captured)

    with_events = statements()
    monkeypatch.setattr("webhooks.publishing.publish_many", lambda publications: [])

    assert with_events == statements() + 2


# --- races --------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("attempt_number", range(5))
def test_whichever_of_two_moves_wins_each_that_happened_is_told_once(
    scene: Scene, attempt_number: int
) -> None:
    command, attempt = scene.on_the_wire()
    moves: list[Callable[[], object]] = [
        lambda: record(answer(attempt, 200)),
        lambda: lifecycle.retract(scene.operator, command.pk),
        lambda: lifecycle.retract(scene.operator, command.pk),
        lambda: lifecycle.acknowledge(scene.operator, command.pk, Report.SUCCESS),
    ]

    race(*moves)

    moved = [line for line in factories.lines(command) if line.to_state in TOLD]
    assert types(scene, command) == [f"command.{line.kind}" for line in moved[2:]]
    assert types(scene, command).count("command.retracted") == 1
