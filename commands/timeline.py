"""Writes the lines of a command's timeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypedDict, Unpack
from uuid import UUID

from commands.models import Command, CommandEvent
from organizations import prepared
from organizations.actors import Actor

# Who a line without an actor is of.
ENGINE: Final = "engine"

# Of a row that ``add`` writes.
COLUMNS: Final = (
    "command_id",
    "kind",
    "at",
    "from_state",
    "to_state",
    "reason",
    "outcome",
    "detail",
    "via",
)


class Move(TypedDict, total=False):
    """A change of state."""

    from_state: str
    to_state: str


class Facts(Move, total=False):
    """What a line may say beyond its kind and actor."""

    reason: str
    outcome: str
    detail: str
    at: datetime


@dataclass(slots=True)
class Moved:
    """A command that the engine moves, as far as a line, an event and a notice tell of it.

    It has the names of the model: reading thousands of those a second is too slow.
    """

    pk: UUID
    organization_id: UUID
    experiment_id: UUID
    dataset_id: UUID
    client_token: str
    name: str
    issued_by_id: UUID
    issued_at: datetime
    reissue_of_id: UUID | None
    dispatched_at: datetime
    ack_deadline: datetime
    early_outcome: str
    delivered_at: datetime | None
    settled_at: datetime | None = None
    failure_reason: str = ""
    retraction_reason: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the engine's own, with the names of the model."""

    command: Moved
    kind: CommandEvent.Kind
    at: datetime
    from_state: str
    to_state: str
    reason: str = ""
    outcome: str = ""
    detail: str = ""


def add(lines: Sequence[Line]) -> None:
    """Write lines of the engine's own, in the transaction of what they tell."""
    if lines:
        prepared.insert(CommandEvent, COLUMNS, [_row(line) for line in lines])


def _row(line: Line) -> prepared.Row:
    return (
        line.command.pk,
        line.kind.value,
        line.at,
        line.from_state,
        line.to_state,
        line.reason,
        line.outcome,
        line.detail,
        ENGINE,
    )


def write(
    command: Command,
    kind: CommandEvent.Kind,
    actor: Actor | None,
    **facts: Unpack[Facts],
) -> CommandEvent:
    """Add a line to the timeline, in the transaction of what it tells. Without an actor it was the
    console's own engine; unless ``at`` is said, the time is the database's.
    """
    event = CommandEvent(
        command=command,
        kind=kind,
        user=actor.user if actor else None,
        api_key=actor.api_key if actor else None,
        via=actor.via if actor else ENGINE,
        **facts,
    )
    event.save(force_insert=True)
    return event
