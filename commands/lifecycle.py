"""What people and integrators do to a command. With ``settling``, which is what the engine and the clock
do, these are all changes of a command's state.

Each step is one transaction that locks what it depends on, in one order everywhere (dataset, endpoint,
delivery, command), decides by the pure rules, and writes the state together with its line on the
timeline. A refusal commits that line too, and is raised afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from commands import datasets, queries, timeline
from commands.announcing import announce
from commands.errors import DispatchRefused, ReportRefused
from commands.models import Command, CommandEvent, Dataset
from commands.rules import dispatching, reports
from commands.rules.reports import Decision, Outcome, Reception, Standing
from commands.rules.states import ACK_TIMEOUT_DEFAULT_S, State
from commands.timeline import Move
from organizations import audit, exact_json
from organizations.actors import Actor
from organizations.clock import database_now, rfc3339
from webhooks import endpoints, publishing
from webhooks.models import Endpoint

Kind = CommandEvent.Kind


@dataclass(frozen=True)
class Reported:
    """What became of a report: applied, kept for the delivery to come, or known already."""

    command: Command
    reception: Reception


@dataclass(frozen=True)
class Retracted:
    """A retracted command, and whether an attempt was on the wire, which nothing recalls."""

    command: Command
    attempt_on_the_wire: bool


# --- dispatch -----------------------------------------------------------------------------------


def dispatch(actor: Actor, command_id: UUID, ack_timeout_s: int = ACK_TIMEOUT_DEFAULT_S) -> Command:
    """Freeze the body, fix the deadline and queue the delivery. Raises DispatchRefused.

    ``ack_timeout_s`` counts from now, not from delivery; the caller has checked its range.
    """
    actor.require("commands:dispatch")
    with transaction.atomic():
        dataset = datasets.share(queries.find(actor, command_id).dataset_id)
        endpoint = endpoints.for_commands(
            actor.organization.pk, dataset.endpoint_id, for_share=True
        )
        command = _lock(command_id)
        refusal = dispatching.refusal(queries.readiness(command, dataset, endpoint))
        if refusal is None and endpoint is not None:
            _queue(actor, command, dataset, endpoint, ack_timeout_s)
            return command
        _note_refusal(actor, command, refusal or "no_endpoint")
    raise DispatchRefused(refusal or "no_endpoint", command)


def _queue(
    actor: Actor, command: Command, dataset: Dataset, endpoint: Endpoint, ack_timeout_s: int
) -> None:
    now = database_now()
    command.dispatched_at = now
    command.ack_deadline = now + timedelta(seconds=ack_timeout_s)
    command.delivery = publishing.send_to(
        endpoint,
        "command.dispatch",
        _body(command, dataset),
        command_id=command.pk,
    )
    command.state = State.QUEUED
    command.dispatch_refusal = ""
    command.save(
        update_fields=[
            "state",
            "dispatched_at",
            "ack_deadline",
            "delivery",
            "dispatch_refusal",
        ]
    )
    timeline.write(command, Kind.DISPATCHED, actor, from_state=State.LOGGED, to_state=State.QUEUED)
    _audit(actor, "command.dispatch", command, State.LOGGED)


def _body(command: Command, dataset: Dataset) -> bytes:
    """The bytes of every attempt. The parameters keep each digit they were issued with."""
    assert command.dispatched_at
    assert command.ack_deadline
    return exact_json.dumps(
        {
            "type": "command.dispatch",
            "timestamp": rfc3339(command.dispatched_at),
            "command": {
                "id": str(command.pk),
                "clientToken": command.client_token,
                "name": command.name,
                "parameters": command.parameters_value,
                "experimentId": str(dataset.experiment_id),
                "datasetId": str(dataset.pk),
                "issuedAt": rfc3339(command.issued_at),
                "ackDeadline": rfc3339(command.ack_deadline),
            },
        }
    ).encode()


def _note_refusal(actor: Actor, command: Command, code: str) -> None:
    if command.state == State.LOGGED:
        command.dispatch_refusal = code
        command.save(update_fields=["dispatch_refusal"])
    timeline.write(command, Kind.DISPATCH_REFUSED, actor, reason=code)


# --- report -------------------------------------------------------------------------------------


def acknowledge(actor: Actor, command_id: UUID, outcome: Outcome, detail: str = "") -> Reported:
    """Take the integrator's report of what the vehicle did. Raises ReportRefused.

    A report that comes before our 2xx is kept and applied together with the delivery. A refused one
    stays on the timeline.
    """
    actor.require("commands:ack")
    queries.find(actor, command_id)
    with transaction.atomic():
        command = _lock(command_id)
        decision = reports.receive(_standing(command), outcome, database_now())
        _take_report(actor, command, outcome, detail, decision)
    if decision.reception == Reception.REFUSED:
        raise ReportRefused(decision.code, command)
    return Reported(command, decision.reception)


def _standing(command: Command) -> Standing:
    return Standing(
        state=State(command.state),
        attempted=command.delivery is not None and command.delivery.attempts > 0,
        ack_deadline=command.ack_deadline,
        early=Outcome(command.early_outcome) if command.early_outcome else None,
    )


def _take_report(
    actor: Actor, command: Command, outcome: Outcome, detail: str, decision: Decision
) -> None:
    match decision.reception:
        case Reception.APPLIED:
            state = reports.STATE_AFTER[outcome]
            _settle(actor, command, state, outcome=outcome, detail=detail)
            _audit(actor, "command.ack", command, State.DELIVERED)
        case Reception.KEPT_EARLY if not command.early_outcome:
            command.early_outcome = outcome
            command.save(update_fields=["early_outcome"])
            timeline.write(command, Kind.REPORT_EARLY, actor, outcome=outcome, detail=detail)
        case Reception.REFUSED:
            if decision.deadline_passed:
                _settle(None, command, State.TIMED_OUT, reason="deadline_passed")
            _keep_refused_report(actor, command, outcome, detail, decision.code)
        case _:
            pass


def _keep_refused_report(
    actor: Actor, command: Command, outcome: Outcome, detail: str, code: str
) -> None:
    """Keep a report that came in vain; the very same one again adds nothing."""
    said = {"outcome": outcome, "detail": detail, "reason": code}
    if not CommandEvent.objects.filter(command=command, kind=Kind.REPORT_REFUSED, **said).exists():
        timeline.write(
            command, Kind.REPORT_REFUSED, actor, outcome=outcome, detail=detail, reason=code
        )


def _settle(actor: Actor | None, command: Command, state: State, **facts: Any) -> None:
    """Move one locked command to a settled state, now."""
    before = command.state
    command.state = state
    command.settled_at = database_now()
    command.save(update_fields=["state", "settled_at"])
    line = timeline.write(
        command,
        Kind(state.value),
        actor,
        from_state=before,
        to_state=state.value,
        **facts,
    )
    announce([line])


# --- retract ------------------------------------------------------------------------------------


def retract(actor: Actor, command_id: UUID, reason: str = "") -> Retracted:
    """Withdraw a command: no further attempt starts. Retracting it again changes nothing.

    What is on the wire cannot be recalled: its outcome is recorded as an attempt, and the command
    stays retracted.
    """
    actor.require("commands:retract")
    queries.find(actor, command_id)
    while True:
        with transaction.atomic():
            # The delivery is locked before the command, as everywhere. A dispatch between the two
            # reads gives the command a delivery that is not locked yet: then begin again, once.
            known = queries.find(actor, command_id).delivery_id
            on_the_wire = publishing.cancel(known) if known else False
            command = _lock(command_id)
            if command.delivery_id == known:
                _retract_locked(actor, command, reason)
                return Retracted(command, on_the_wire)


def _retract_locked(actor: Actor, command: Command, reason: str) -> None:
    before = command.state
    if before == State.RETRACTED:
        return
    now = database_now()
    command.state = State.RETRACTED
    command.retracted_by = actor.user
    command.retracted_at = now
    command.retraction_reason = reason
    command.settled_at = command.settled_at or now
    command.save(
        update_fields=[
            "state",
            "retracted_by",
            "retracted_at",
            "retraction_reason",
            "settled_at",
        ]
    )
    moved = Move(from_state=before, to_state=State.RETRACTED)
    announce([timeline.write(command, Kind.RETRACTED, actor, detail=reason, **moved)])
    _audit(actor, "command.retract", command, before)


# --- rows ---------------------------------------------------------------------------------------


def _lock(command_id: UUID) -> Command:
    """The command, locked as it is read; what it belongs to is read along."""
    rows = Command.objects.select_for_update(of=("self",), no_key=True)
    return rows.select_related("dataset", "delivery", "issued_by").get(pk=command_id)


def _audit(actor: Actor, act: str, command: Command, before: str) -> None:
    audit.record(actor, act, command, before={"state": before}, after={"state": command.state})
