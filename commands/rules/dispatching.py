"""Whether a command may be dispatched, and the bytes that then go out."""

from __future__ import annotations

from dataclasses import dataclass

from commands.rules.states import State


@dataclass(frozen=True)
class Readiness:
    """What a dispatch depends on. ``endpoint_enabled`` is None where no endpoint takes the command."""

    state: State
    dataset_armed: bool
    endpoint_enabled: bool | None


def refusal(readiness: Readiness) -> str | None:
    """The code of the reason why not, or None. What cannot be mended comes first."""
    if readiness.state == State.RETRACTED:
        return "retracted"
    if readiness.state != State.LOGGED:
        return "already_dispatched"
    if not readiness.dataset_armed:
        return "dataset_unarmed"
    if readiness.endpoint_enabled is None:
        return "no_endpoint"
    if not readiness.endpoint_enabled:
        return "endpoint_disabled"
    return None
