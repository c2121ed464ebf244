"""Retracting: from every state, with an attempt on the wire, and what it cannot recall."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from commands import lifecycle
from commands.models import Command
from commands.rules.reports import Outcome as Report
from commands.rules.states import State
from organizations.clock import database_now
from organizations.models import AuditEntry
from tests import factories
from tests.factories import Scene, attempts, delivery_of, fresh, lines, new_scene, record, story
from webhooks.engine import claims, tasks
from webhooks.engine.claims import Claimed
from webhooks.engine.recorder import Outcome
from webhooks.models import Delivery

ENDS: dict[str, Callable[[Claimed], Outcome]] = {
    "200": lambda attempt: factories.answer(attempt, 200),
    "503": lambda attempt: factories.answer(attempt, 503),
    "400": lambda attempt: factories.answer(attempt, 400),
    "timeout": lambda attempt: factories.no_answer(attempt, "timeout"),
    "lost": factories.lost,
}


@pytest.mark.parametrize("state", [state for state in State if state != State.RETRACTED])
def test_a_command_is_retracted_from_every_state(scene: Scene, state: State) -> None:
    command = scene.in_state(state)
    before = database_now()

    retracted = lifecycle.retract(scene.operator, command.pk, "wrong vehicle")

    command = fresh(command)
    assert not retracted.attempt_on_the_wire
    assert command.state == State.RETRACTED
    assert command.retracted_by == scene.operator.user
    assert command.retraction_reason == "wrong vehicle"
    assert command.retracted_at
    assert before <= command.retracted_at <= database_now()
    assert command.settled_at


@pytest.mark.parametrize("state", [state for state in State if state != State.RETRACTED])
def test_a_retraction_is_told_and_audited(scene: Scene, state: State) -> None:
    command = scene.in_state(state)

    lifecycle.retract(scene.operator, command.pk, "wrong vehicle")

    line, entry = lines(command)[-1], AuditEntry.objects.latest("pk")
    assert (line.kind, line.from_state, line.to_state) == ("retracted", state, "retracted")
    assert (line.detail, line.user) == ("wrong vehicle", scene.operator.user)
    assert (entry.act, entry.target_id) == ("command.retract", str(command.pk))
    assert (entry.before, entry.after) == ({"state": state.value}, {"state": "retracted"})


def test_retracting_again_changes_nothing(scene: Scene) -> None:
    command = scene.dispatched()
    lifecycle.retract(scene.operator, command.pk, "wrong vehicle")
    first, told, audited = fresh(command), story(command), AuditEntry.objects.count()

    lifecycle.retract(scene.owner, command.pk, "another reason")

    again = fresh(command)
    assert again.retraction_reason == "wrong vehicle"
    assert (again.retracted_at, again.retracted_by_id) == (
        first.retracted_at,
        first.retracted_by_id,
    )
    assert story(command) == told
    assert AuditEntry.objects.count() == audited


def test_when_a_settled_command_ended_stays_known(scene: Scene) -> None:
    command = scene.in_state(State.ACKED)
    settled_at = command.settled_at

    lifecycle.retract(scene.operator, command.pk)

    assert fresh(command).settled_at == settled_at


def test_a_waiting_delivery_is_cancelled_and_never_claimed(scene: Scene) -> None:
    command = scene.dispatched()

    lifecycle.retract(scene.operator, command.pk)

    delivery = delivery_of(command)
    assert delivery.state == Delivery.State.CANCELLED
    assert delivery.next_attempt_at is None
    assert delivery.settled_at
    assert claims.claim(10, factories.WORKER) == []


def test_a_delivery_that_waits_for_its_next_attempt_is_cancelled(scene: Scene) -> None:
    command = scene.dispatched()
    factories.fail_with(command, [503, 503])

    assert not lifecycle.retract(scene.operator, command.pk).attempt_on_the_wire

    assert delivery_of(command).state == Delivery.State.CANCELLED
    assert len(attempts(command)) == 2


def test_what_was_delivered_stays_delivered(scene: Scene) -> None:
    command = scene.delivered()

    lifecycle.retract(scene.operator, command.pk)

    assert delivery_of(command).state == Delivery.State.DELIVERED
    assert fresh(command).delivered_at == command.delivered_at


def test_a_retraction_says_that_an_attempt_is_on_the_wire(scene: Scene) -> None:
    command, _ = scene.on_the_wire()

    assert lifecycle.retract(scene.operator, command.pk).attempt_on_the_wire
    assert lifecycle.retract(scene.operator, command.pk).attempt_on_the_wire

    assert delivery_of(command).state == Delivery.State.CANCELLED


@pytest.mark.parametrize("end", ENDS)
def test_the_attempt_on_the_wire_is_recorded_and_the_command_stays_retracted(
    scene: Scene, end: str
) -> None:
    command, attempt = scene.on_the_wire()
    lifecycle.retract(scene.operator, command.pk)
    told = story(command)
    outcome = ENDS[end](attempt)

    assert record(outcome) == 1

    [made] = attempts(command)
    delivery, command = delivery_of(command), fresh(command)
    assert (made.verdict, made.status_code) == (outcome.verdict, outcome.status_code)
    assert made.finished_at == outcome.finished_at
    assert made.next_attempt_at is None
    assert (delivery.state, delivery.next_attempt_at) == (Delivery.State.CANCELLED, None)
    assert delivery.lease_until is None
    assert (command.state, command.delivered_at) == (State.RETRACTED, None)
    assert story(command) == told


def test_an_attempt_whose_worker_died_after_the_retraction_is_closed_too(scene: Scene) -> None:
    command, _ = scene.on_the_wire()
    lifecycle.retract(scene.operator, command.pk)
    Delivery.objects.update(lease_until=database_now())

    assert tasks.sweep_leases() == 1

    assert attempts(command)[0].verdict == "lost"
    assert delivery_of(command).lease_until is None
    assert claims.claim(10, factories.WORKER) == []


def test_an_early_report_does_not_outlive_a_retraction(scene: Scene) -> None:
    command, attempt = scene.on_the_wire()
    lifecycle.acknowledge(scene.operator, command.pk, Report.SUCCESS)
    lifecycle.retract(scene.operator, command.pk)

    record(factories.answer(attempt, 200))

    assert fresh(command).state == State.RETRACTED
    assert story(command) == ["issued", "dispatched", "report_early", "retracted"]


def test_nothing_of_another_organization_is_retracted(scene: Scene) -> None:
    theirs = new_scene("Another").dispatched()

    with pytest.raises(Command.DoesNotExist):
        lifecycle.retract(scene.operator, theirs.pk)

    assert fresh(theirs).state == State.QUEUED
    assert delivery_of(theirs).state == Delivery.State.PENDING
