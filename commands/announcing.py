"""Tells of what happens to a command: each change of its state is an event for whoever subscribes, and
some are a notice to the operator who issued it. Both are of the transaction that makes the change.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from commands import notices
from commands.models import CommandEvent
from commands.rules.states import SETTLED
from commands.timeline import Line
from organizations.clock import rfc3339
from webhooks import publishing
from webhooks.publishing import Publication

Kind = CommandEvent.Kind

PUBLISHED: Final = {
    kind: f"command.{kind.value}"
    for kind in (
        Kind.DELIVERED,
        Kind.FAILED,
        Kind.ACKED,
        Kind.NACKED,
        Kind.TIMED_OUT,
        Kind.RETRACTED,
    )
}


def announce(lines: Sequence[CommandEvent | Line]) -> None:
    """Tell of these lines of timelines. Wants their commands as they are now, with their datasets."""
    notices.tell(lines)
    publishing.publish_many([_publication(line) for line in lines if Kind(line.kind) in PUBLISHED])


def _publication(line: CommandEvent | Line) -> Publication:
    return Publication(
        organization_id=line.command.organization_id,
        type=PUBLISHED[Kind(line.kind)],
        data={"command": _as_of(line)},
        at=line.at,
    )


def _as_of(line: CommandEvent | Line) -> dict[str, Any]:
    """The command as the API shows it, without its parameters and without people, at this line: a
    command may have gone on in the same transaction.
    """
    command = line.command
    return {
        "id": str(command.pk),
        "clientToken": command.client_token,
        "experimentId": str(command.experiment_id),
        "datasetId": str(command.dataset_id),
        "name": command.name,
        "state": line.to_state,
        "issuedAt": _instant(command.issued_at),
        "dispatchedAt": _instant(command.dispatched_at),
        "deliveredAt": _instant(command.delivered_at),
        "ackDeadline": _instant(command.ack_deadline),
        "settledAt": _instant(command.settled_at) if line.to_state in SETTLED else None,
        "failureReason": command.failure_reason or None,
        "retractionReason": command.retraction_reason or None,
        "reissueOf": str(command.reissue_of_id) if command.reissue_of_id else None,
    }


def _instant(at: datetime | None) -> str | None:
    return rfc3339(at) if at else None
