"""How a command's state looks, and why its dispatch was refused, in words."""

from __future__ import annotations

from typing import Final

from commands.rules.states import State
from organizations.console.looks import Look

LOOKS: Final = {
    State.LOGGED: Look("Logged", "waiting", "logged", "On record, not dispatched"),
    State.QUEUED: Look("Queued", "waiting", "queued", "On its way to the endpoint"),
    State.DELIVERED: Look("Delivered", "waiting", "delivered", "Taken; waiting for a report"),
    State.ACKED: Look("Acked", "good", "acked", "Success was reported"),
    State.NACKED: Look("Nacked", "bad", "nacked", "A rejection was reported"),
    State.FAILED: Look("Failed", "bad", "failed", "Not delivered"),
    State.TIMED_OUT: Look("Timed out", "person", "timed_out", "Nobody knows what the vehicle did"),
    State.RETRACTED: Look("Retracted", "withdrawn", "retracted", "Withdrawn by an operator"),
}
# A refused dispatch leaves a command logged, but somebody has to do something.
REFUSED: Final = Look("Refused", "person", "refused", "Its dispatch was refused; still logged")

# What the list is narrowed to by one click: the states, and those that a refusal sets apart.
REFUSED_ONLY: Final = "refused"
CHOICES: Final[dict[str, Look]] = {
    State.LOGGED: LOOKS[State.LOGGED],
    REFUSED_ONLY: REFUSED,
    **{state: look for state, look in LOOKS.items() if state != State.LOGGED},
}


def look_of(state: str, dispatch_refusal: str = "") -> Look:
    """The look of a command in this state."""
    if state == State.LOGGED and dispatch_refusal:
        return REFUSED
    return LOOKS[State(state)]


REFUSALS: Final = {
    "dataset_unarmed": "dataset not armed",
    "no_endpoint": "no endpoint",
    "endpoint_disabled": "endpoint disabled",
}
