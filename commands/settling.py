"""What the engine and the clock do to commands: their deliveries end, their deadlines pass.

It runs for every delivery, so it reads what it needs and no more, and writes each kind of row with one
statement a batch. Locks and order are those of ``lifecycle``, which has the steps of people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from commands import timeline
from commands.announcing import announce
from commands.models import CommandEvent
from commands.rules import reports
from commands.rules.reports import Outcome
from commands.rules.states import State
from commands.timeline import Line, Moved
from organizations import prepared
from organizations.clock import database_now
from webhooks.models import Delivery
from webhooks.signals import Settlement

Kind = CommandEvent.Kind

# Deadlines that one sweep acts on at most; what is left waits for the next, half a second later.
SWEEP_LIMIT = 500

# What ``Moved`` holds, in its order.
READ = """
SELECT c.id, c.organization_id, d.experiment_id, c.dataset_id, c.client_token, c.name, c.issued_by_id,
       c.issued_at, c.reissue_of_id, c.dispatched_at, c.ack_deadline, c.early_outcome, c.delivered_at
  FROM commands_command c JOIN commands_dataset d ON d.id = c.dataset_id
"""

QUEUED = f"""{READ}
 WHERE c.id = ANY(%s) AND c.state = 'queued' ORDER BY c.id FOR NO KEY UPDATE OF c
"""

OVERDUE = f"""{READ}
 WHERE c.state = 'delivered' AND c.ack_deadline <= statement_timestamp()
 ORDER BY c.ack_deadline LIMIT %s FOR NO KEY UPDATE OF c SKIP LOCKED
"""

DELIVERED = """
UPDATE commands_command c SET state = 'delivered', delivered_at = r.at
  FROM unnest(%s::uuid[], %s::timestamptz[]) AS r(id, at) WHERE c.id = r.id
"""

SETTLED = """
UPDATE commands_command c SET state = r.state, settled_at = r.at, failure_reason = r.reason
  FROM unnest(%s::uuid[], %s::text[], %s::timestamptz[], %s::text[]) AS r(id, state, at, reason)
 WHERE c.id = r.id
"""


def on_deliveries_settled(settlements: Sequence[Settlement], **_: Any) -> None:
    """Move the commands whose deliveries ended, inside the transaction that recorded the end."""
    ended = {s.command_id: s for s in settlements if s.command_id}
    if not ended:
        return
    commands = [Moved(*row) for row in prepared.execute(QUEUED, [list(ended)])]
    delivered = [c for c in commands if ended[c.pk].state == Delivery.State.DELIVERED]
    failed = [c for c in commands if ended[c.pk].state == Delivery.State.FAILED]
    lines = _deliver(delivered, ended)
    lines += _settle([_failure(command, ended[command.pk]) for command in failed])
    lines += _settle([line for c in delivered if (line := _going_on_at_once(c, ended[c.pk].at))])
    timeline.add(lines)
    announce(lines)


def time_out_overdue() -> int:
    """Time out the delivered commands whose deadline has passed; how many."""
    with transaction.atomic():
        overdue = [Moved(*row) for row in prepared.execute(OVERDUE, [SWEEP_LIMIT])]
        if overdue:
            now = database_now()
            lines = _settle([_timeout(command, now) for command in overdue])
            timeline.add(lines)
            announce(lines)
    return len(overdue)


def _deliver(commands: Sequence[Moved], ended: Mapping[UUID, Settlement]) -> list[Line]:
    for command in commands:
        command.delivered_at = ended[command.pk].at
    _execute(DELIVERED, [(c.pk, c.delivered_at) for c in commands])
    return [
        Line(c, Kind.DELIVERED, ended[c.pk].at, State.QUEUED, State.DELIVERED) for c in commands
    ]


def _failure(command: Moved, end: Settlement) -> Line:
    command.failure_reason = end.failure_reason
    return Line(command, Kind.FAILED, end.at, State.QUEUED, State.FAILED, end.failure_reason)


def _going_on_at_once(command: Moved, delivered_at: datetime) -> Line | None:
    """An early report that now applies, or a delivery that came after the deadline."""
    early = Outcome(command.early_outcome) if command.early_outcome else None
    onward = reports.state_on_delivery(early, delivered_at, command.ack_deadline)
    if onward is None:
        return None
    reason = "reported_early" if early else "delivered_after_deadline"
    outcome = command.early_outcome
    return Line(command, Kind(onward.value), delivered_at, State.DELIVERED, onward, reason, outcome)


def _timeout(command: Moved, now: datetime) -> Line:
    return Line(command, Kind.TIMED_OUT, now, State.DELIVERED, State.TIMED_OUT, "deadline_passed")


def _settle(lines: list[Line]) -> list[Line]:
    """Move commands to where these lines say they settled."""
    rows = []
    for line in lines:
        line.command.settled_at = line.at
        rows.append((line.command.pk, line.to_state, line.at, line.command.failure_reason))
    _execute(SETTLED, rows)
    return lines


def _execute(sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
    """Run a statement over rows given as arrays, one array a column."""
    if rows:
        prepared.execute(sql, prepared.columns(rows))
