"""Every change of a command's state, and nothing else changes one.

Each step is one transaction that locks what it depends on, in one order everywhere (dataset, endpoint,
delivery, command), decides by the pure rules, and writes the state together with its line on the
timeline. A refusal commits that line too, and is raised afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from commands import datasets, queries, timeline
from commands.announcing import announce
from commands.errors import DispatchRefused, ReportRefused
from commands.models import Command, CommandEvent, Dataset
from commands.rules import dispatching, reports
from commands.rules.reports import Decision, Outcome, Reception, Standing
from commands.rules.states import ACK_TIMEOUT_DEFAULT_S, State
from commands.timeline import Move
from organizations import audit, exact_json, prepared
from organizations.actors import Actor
from organizations.clock import database_now, rfc3339
from webhooks import endpoints, publishing
from webhooks.models import Delivery, Endpoint
from webhooks.signals import Settlement

Kind = CommandEvent.Kind

# Deadlines that one sweep acts on at most; what is left waits for the next, half a second later.
SWEEP_LIMIT = 500


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


# --- what the engine and the clock do -----------------------------------------------------------


def on_deliveries_settled(settlements: Sequence[Settlement], **_: Any) -> None:
    """Move the commands whose deliveries ended, inside the transaction that recorded the end."""
    ended = {s.command_id: s for s in settlements if s.command_id}
    commands = _locking().filter(pk__in=ended).order_by("pk")
    queued = [command for command in commands if command.state == State.QUEUED]
    delivered = [c for c in queued if ended[c.pk].state == Delivery.State.DELIVERED]
    failed = [c for c in queued if ended[c.pk].state == Delivery.State.FAILED]
    lines = _mark_delivered(delivered, ended) + _mark_failed(failed, ended)
    lines += _go_on_at_once(delivered, ended)
    prepared.insert(lines)
    announce(lines)


def _mark_delivered(
    commands: Sequence[Command], ended: dict[UUID, Settlement]
) -> list[CommandEvent]:
    for command in commands:
        command.delivered_at = ended[command.pk].at
    _execute(
        "UPDATE commands_command c SET state = 'delivered', delivered_at = r.at"
        " FROM unnest(%s::uuid[], %s::timestamptz[]) AS r(id, at) WHERE c.id = r.id",
        [(c.pk, c.delivered_at) for c in commands],
    )
    moved = Move(from_state=State.QUEUED, to_state=State.DELIVERED)
    return [timeline.line(c, Kind.DELIVERED, None, at=ended[c.pk].at, **moved) for c in commands]


def _mark_failed(commands: Sequence[Command], ended: dict[UUID, Settlement]) -> list[CommandEvent]:
    for command in commands:
        end = ended[command.pk]
        command.settled_at, command.failure_reason = end.at, end.failure_reason
    _execute(
        "UPDATE commands_command c SET state = 'failed', settled_at = r.at,"
        " failure_reason = r.reason"
        " FROM unnest(%s::uuid[], %s::timestamptz[], %s::text[]) AS r(id, at, reason)"
        " WHERE c.id = r.id",
        [(c.pk, c.settled_at, c.failure_reason) for c in commands],
    )
    moved = Move(from_state=State.QUEUED, to_state=State.FAILED)
    return [
        timeline.line(c, Kind.FAILED, None, at=ended[c.pk].at, reason=c.failure_reason, **moved)
        for c in commands
    ]


def _go_on_at_once(
    delivered: Sequence[Command], ended: dict[UUID, Settlement]
) -> list[CommandEvent]:
    """Apply early reports, and time out what was delivered after its deadline."""
    lines: list[CommandEvent] = []
    for command in delivered:
        at, early = ended[command.pk].at, command.early_outcome
        onward = _state_on_delivery(command, at)
        if onward is None:
            continue
        command.settled_at = at
        Command.objects.filter(pk=command.pk).update(state=onward, settled_at=at)
        lines.append(
            timeline.line(
                command,
                Kind(onward.value),
                None,
                at=at,
                from_state=State.DELIVERED,
                to_state=onward,
                outcome=early,
                reason="reported_early" if early else "delivered_after_deadline",
            )
        )
    return lines


def _state_on_delivery(command: Command, delivered_at: datetime) -> State | None:
    assert command.ack_deadline is not None
    early = Outcome(command.early_outcome) if command.early_outcome else None
    return reports.state_on_delivery(early, delivered_at, command.ack_deadline)


def time_out_overdue() -> int:
    """Time out the delivered commands whose deadline has passed; how many."""
    with transaction.atomic():
        overdue = list(
            _locking(skip_locked=True)
            .filter(state=State.DELIVERED, ack_deadline__lte=Now())
            .order_by("ack_deadline")[:SWEEP_LIMIT]
        )
        if overdue:
            now = database_now()
            for command in overdue:
                command.settled_at = now
            ids = [command.pk for command in overdue]
            Command.objects.filter(pk__in=ids).update(state=State.TIMED_OUT, settled_at=now)
            moved = Move(from_state=State.DELIVERED, to_state=State.TIMED_OUT)
            reason = "deadline_passed"
            lines = [
                timeline.line(c, Kind.TIMED_OUT, None, at=now, reason=reason, **moved)
                for c in overdue
            ]
            prepared.insert(lines)
            announce(lines)
    return len(overdue)


# --- rows ---------------------------------------------------------------------------------------


def _locking(*, skip_locked: bool = False) -> QuerySet[Command]:
    """Commands, locked as they are read; what they belong to is read along.

    Not their parameters: those may have a mebibyte each, and a sweep reads hundreds of commands.
    """
    rows = Command.objects.select_for_update(of=("self",), no_key=True, skip_locked=skip_locked)
    return rows.select_related("dataset").defer("parameters")


def _lock(command_id: UUID) -> Command:
    return _locking().defer(None).select_related("delivery", "issued_by").get(pk=command_id)


def _execute(sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Run a statement over rows given as arrays, one array a column."""
    if rows:
        prepared.execute(sql, prepared.columns(rows))


def _audit(actor: Actor, act: str, command: Command, before: str) -> None:
    audit.record(actor, act, command, before={"state": before}, after={"state": command.state})
