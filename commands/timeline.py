"""Writes the lines of a command's timeline."""

from __future__ import annotations

from datetime import datetime
from typing import TypedDict, Unpack

from commands.models import Command, CommandEvent
from organizations.actors import Actor


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


def line(
    command: Command,
    kind: CommandEvent.Kind,
    actor: Actor | None,
    **facts: Unpack[Facts],
) -> CommandEvent:
    """A line of the timeline, not yet saved; unless ``at`` is said, its time is the database's when it is.

    Without an actor it was the console's own engine.
    """
    return CommandEvent(
        command=command,
        kind=kind,
        user=actor.user if actor else None,
        api_key=actor.api_key if actor else None,
        via=actor.via if actor else "engine",
        **facts,
    )


def write(
    command: Command,
    kind: CommandEvent.Kind,
    actor: Actor | None,
    **facts: Unpack[Facts],
) -> CommandEvent:
    """Add a line to the timeline, in the transaction of what it tells."""
    event = line(command, kind, actor, **facts)
    event.save(force_insert=True)
    return event
