"""What the operator who issued a command is told: it timed out, failed, or was rejected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from commands.models import CommandEvent
from commands.timeline import Line
from organizations.notices import outbox
from organizations.notices.outbox import Fact
from organizations.rules.notices import Kind
from organizations.rules.texts import one_line

TOLD: Final[dict[str, Kind]] = {
    CommandEvent.Kind.TIMED_OUT: Kind.COMMAND_TIMED_OUT,
    CommandEvent.Kind.FAILED: Kind.COMMAND_FAILED,
    CommandEvent.Kind.NACKED: Kind.COMMAND_NACKED,
}


def tell(lines: Sequence[CommandEvent | Line]) -> None:
    """Tell of those lines of timelines that somebody must know of, in their own transaction."""
    outbox.tell([_fact(line, TOLD[line.kind]) for line in lines if line.kind in TOLD])


def _fact(line: CommandEvent | Line, kind: Kind) -> Fact:
    command = line.command
    return Fact(
        organization_id=command.organization_id,
        recipient_id=command.issued_by_id,
        kind=kind,
        name=f"{kind}:{command.pk}",
        subject_id=command.pk,
        content={
            "name": one_line(command.name, 200),
            "token": one_line(command.client_token, 100),
            "reason": line.reason,
            "detail": one_line(line.detail, 200),
        },
    )
