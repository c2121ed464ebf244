"""Reports of what the vehicle did: in time, early, late, repeated, contradicting. None is ever lost."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from commands import lifecycle, settling
from commands.errors import ReportRefused
from commands.models import Command
from commands.rules.reports import Outcome, Reception
from commands.rules.states import State
from organizations.clock import database_now
from organizations.models import AuditEntry
from tests import factories
from tests.factories import Scene, fresh, lines, new_scene, record, story

SUCCESS, REJECTION = Outcome.SUCCESS, Outcome.REJECTION
BOTH = [(SUCCESS, State.ACKED), (REJECTION, State.NACKED)]


def report(scene: Scene, command: Command, outcome: Outcome, detail: str = "") -> Reception:
    return lifecycle.acknowledge(scene.operator, command.pk, outcome, detail).reception


def refused(scene: Scene, command: Command, outcome: Outcome = SUCCESS, detail: str = "") -> str:
    """The code with which the report is refused."""
    with pytest.raises(ReportRefused) as refusal:
        report(scene, command, outcome, detail)
    assert str(refusal.value) != refusal.value.code, "a refusal says what happened in a sentence"
    return refusal.value.code


# --- in time ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("outcome", "state"), BOTH)
def test_a_report_in_time_settles_the_command(scene: Scene, outcome: Outcome, state: State) -> None:
    command = scene.delivered()
    before = database_now()

    assert report(scene, command, outcome, "done at 12:00") == Reception.APPLIED

    command = fresh(command)
    line = lines(command)[-1]
    assert command.state == state
    assert command.settled_at
    assert before <= command.settled_at <= database_now()
    assert (line.kind, line.from_state, line.to_state) == (state, "delivered", state)
    assert (line.outcome, line.detail) == (outcome, "done at 12:00")
    assert line.user == scene.operator.user


def test_an_applied_report_is_audited_with_before_and_after(scene: Scene) -> None:
    report(scene, scene.delivered(), SUCCESS)

    entry = AuditEntry.objects.latest("pk")
    assert entry.act == "command.ack"
    assert (entry.before, entry.after) == ({"state": "delivered"}, {"state": "acked"})


@pytest.mark.parametrize(("outcome", "state"), BOTH)
def test_the_same_report_again_changes_nothing(
    scene: Scene, outcome: Outcome, state: State
) -> None:
    command = scene.delivered()
    report(scene, command, outcome)
    settled, told, audited = fresh(command), story(command), AuditEntry.objects.count()

    assert report(scene, command, outcome, "once more") == Reception.REPEATED

    assert fresh(command).settled_at == settled.settled_at
    assert fresh(command).state == state
    assert story(command) == told
    assert AuditEntry.objects.count() == audited


@pytest.mark.parametrize(("outcome", "state"), BOTH)
def test_a_contradicting_report_is_refused_and_kept(
    scene: Scene, outcome: Outcome, state: State
) -> None:
    command = scene.delivered()
    report(scene, command, outcome)
    opposite = REJECTION if outcome == SUCCESS else SUCCESS

    assert refused(scene, command, opposite, "on second thoughts") == "ack_conflict"

    line = lines(command)[-1]
    assert fresh(command).state == state
    assert (line.kind, line.outcome, line.reason) == ("report_refused", opposite, "ack_conflict")
    assert line.detail == "on second thoughts"


# --- early --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("outcome", "state"), BOTH)
def test_a_report_that_overtakes_the_answer_is_applied_with_the_delivery(
    scene: Scene, outcome: Outcome, state: State
) -> None:
    command, attempt = scene.on_the_wire()

    assert report(scene, command, outcome, "that was quick") == Reception.KEPT_EARLY
    assert fresh(command).state == State.QUEUED
    record(factories.answer(attempt, 200))

    command = fresh(command)
    assert command.state == state
    assert command.delivered_at
    assert command.settled_at
    assert story(command) == ["issued", "dispatched", "report_early", "delivered", state]
    assert (lines(command)[-1].outcome, lines(command)[-1].reason) == (outcome, "reported_early")


def test_a_report_between_two_attempts_is_early_too(scene: Scene) -> None:
    command = scene.dispatched()
    factories.fail_with(command, [503])

    assert report(scene, command, SUCCESS) == Reception.KEPT_EARLY
    factories.fail_with(command, [200])

    assert fresh(command).state == State.ACKED


def test_an_early_report_is_repeated_without_a_second_line(scene: Scene) -> None:
    command, _ = scene.on_the_wire()
    report(scene, command, SUCCESS)

    assert report(scene, command, SUCCESS, "again") == Reception.KEPT_EARLY
    assert story(command).count("report_early") == 1


def test_an_early_report_is_not_replaced_by_a_contradicting_one(scene: Scene) -> None:
    command, attempt = scene.on_the_wire()
    report(scene, command, REJECTION)

    assert refused(scene, command, SUCCESS) == "ack_conflict"
    record(factories.answer(attempt, 200))

    assert fresh(command).state == State.NACKED
    assert lines(command)[-3].reason == "ack_conflict"


def test_an_early_report_of_a_delivery_that_fails_stays_on_the_timeline(scene: Scene) -> None:
    command, attempt = scene.on_the_wire()
    report(scene, command, SUCCESS)

    record(factories.answer(attempt, 400))

    assert fresh(command).state == State.FAILED
    assert story(command) == ["issued", "dispatched", "report_early", "failed"]


def test_a_report_before_any_attempt_is_refused_and_kept(scene: Scene) -> None:
    for command in (scene.issued(), scene.dispatched()):
        state = command.state

        assert refused(scene, command, SUCCESS, "already?") == "not_delivered"

        assert fresh(command).state == state
        assert fresh(command).early_outcome == ""
        assert (lines(command)[-1].kind, lines(command)[-1].detail) == (
            "report_refused",
            "already?",
        )


# --- late ---------------------------------------------------------------------------------------


def test_a_late_report_is_kept_but_does_not_move_the_command(scene: Scene) -> None:
    command = scene.in_state(State.TIMED_OUT)

    assert refused(scene, command, SUCCESS, "sorry") == "ack_too_late"

    assert fresh(command).state == State.TIMED_OUT
    line = lines(command)[-1]
    assert (line.kind, line.outcome, line.detail) == ("report_refused", "success", "sorry")


def test_a_late_report_times_the_command_out_before_the_sweep_does(scene: Scene) -> None:
    command = scene.overdue()
    assert command.state == State.DELIVERED

    assert refused(scene, command) == "ack_too_late"

    assert fresh(command).state == State.TIMED_OUT
    assert fresh(command).settled_at
    assert story(command)[-2:] == ["timed_out", "report_refused"]
    assert lines(command)[-2].reason == "deadline_passed"
    assert lines(command)[-2].via == "engine"
    assert settling.time_out_overdue() == 0


def test_a_report_after_the_deadline_is_late_even_when_the_delivery_is_later(scene: Scene) -> None:
    command, attempt = scene.on_the_wire(ack_timeout_s=0)

    assert refused(scene, command) == "ack_too_late"
    record(factories.answer(attempt, 200))

    assert fresh(command).state == State.TIMED_OUT
    assert story(command)[-3:] == ["report_refused", "delivered", "timed_out"]


def test_an_early_report_counts_though_the_delivery_ends_after_the_deadline(scene: Scene) -> None:
    command, attempt = scene.on_the_wire()
    report(scene, command, SUCCESS)
    assert command.ack_deadline

    record(factories.answer(attempt, 200, finished_at=command.ack_deadline + timedelta(seconds=5)))

    assert fresh(command).state == State.ACKED
    assert story(command)[-2:] == ["delivered", "acked"]


# --- in vain ------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [State.FAILED, State.RETRACTED])
def test_a_report_of_what_is_over_is_refused_and_kept(scene: Scene, state: State) -> None:
    command = scene.in_state(state)

    assert refused(scene, command, SUCCESS, "it did it") == state.value

    assert fresh(command).state == state
    assert (lines(command)[-1].kind, lines(command)[-1].detail) == ("report_refused", "it did it")


@pytest.mark.parametrize(
    "state", [State.LOGGED, State.FAILED, State.RETRACTED, State.TIMED_OUT, State.NACKED]
)
def test_a_refused_report_that_is_repeated_is_kept_once(scene: Scene, state: State) -> None:
    command = scene.in_state(state)

    codes = {refused(scene, command, SUCCESS, "it did it") for _ in range(3)}

    assert len(codes) == 1
    assert story(command).count("report_refused") == 1


@pytest.mark.parametrize(
    "second",
    [
        {"outcome": REJECTION, "detail": "it did it"},
        {"outcome": SUCCESS, "detail": "in other words"},
    ],
)
def test_refused_reports_that_differ_are_all_kept(scene: Scene, second: dict[str, Any]) -> None:
    command = scene.failed()
    refused(scene, command, SUCCESS, "it did it")

    refused(scene, command, **second)

    assert story(command).count("report_refused") == 2


def test_a_report_for_an_unknown_command_is_not_taken(scene: Scene) -> None:
    theirs = new_scene("Another").delivered()

    for unknown in (theirs.pk, uuid4()):
        with pytest.raises(Command.DoesNotExist):
            lifecycle.acknowledge(scene.operator, unknown, SUCCESS)
    assert fresh(theirs).state == State.DELIVERED
    assert story(theirs)[-1] == "delivered"
