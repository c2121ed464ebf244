"""Writes the lines of a command's timeline."""

from __future__ import annotations

from typing import TypedDict, Unpack

from commands.models import Command, CommandEvent
from organizations.actors import Actor


class Facts(TypedDict, total=False):
    """What a line may say beyond its kind and actor."""

    from_state: str
    to_state: str
    reason: str
    outcome: str
    detail: str


def line(
    command: Command,
    kind: CommandEvent.Kind,
    actor: Actor | None,
    **facts: Unpack[Facts],
) -> CommandEvent:
    """A line of the timeline, not yet saved; its time is the database's when it is.

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
