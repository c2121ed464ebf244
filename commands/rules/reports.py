"""What an integrator's report does to a command, decided without touching anything."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from commands.rules.states import State


class Outcome(StrEnum):
    """What the vehicle did, as the integrator reports it."""

    SUCCESS = "success"
    REJECTION = "rejection"


class Reception(StrEnum):
    """What becomes of a report."""

    APPLIED = "applied"
    KEPT_EARLY = "kept_early"
    REPEATED = "repeated"
    REFUSED = "refused"


STATE_AFTER: Final = {Outcome.SUCCESS: State.ACKED, Outcome.REJECTION: State.NACKED}


@dataclass(frozen=True)
class Standing:
    """Where a command stands when a report arrives. ``early`` is a report kept before delivery."""

    state: State
    attempted: bool
    ack_deadline: datetime | None
    early: Outcome | None


@dataclass(frozen=True)
class Decision:
    """What to do with a report; ``code`` says why when it is refused.

    ``deadline_passed`` asks for the move to timed_out that the sweep had not made yet.
    """

    reception: Reception
    code: str = ""
    deadline_passed: bool = False


def receive(standing: Standing, outcome: Outcome, now: datetime) -> Decision:
    """Judge a report. None is ever lost: what is refused is kept on the timeline all the same."""
    late = standing.ack_deadline is not None and now >= standing.ack_deadline
    match standing.state:
        case State.RETRACTED | State.FAILED as state:
            return Decision(Reception.REFUSED, state.value)
        case State.TIMED_OUT:
            return Decision(Reception.REFUSED, "ack_too_late")
        case State.ACKED | State.NACKED as state:
            return _repeat_or_conflict(state == STATE_AFTER[outcome], Reception.REPEATED)
        case State.QUEUED if standing.early is not None:
            return _repeat_or_conflict(standing.early == outcome, Reception.KEPT_EARLY)
        case State.DELIVERED if late:
            return Decision(Reception.REFUSED, "ack_too_late", deadline_passed=True)
        case State.DELIVERED:
            return Decision(Reception.APPLIED)
        case State.QUEUED if not standing.attempted:
            return Decision(Reception.REFUSED, "not_delivered")
        case State.QUEUED if late:
            return Decision(Reception.REFUSED, "ack_too_late")
        case State.QUEUED:
            return Decision(Reception.KEPT_EARLY)
        case _:
            return Decision(Reception.REFUSED, "not_delivered")


def _repeat_or_conflict(same: bool, reception: Reception) -> Decision:
    return Decision(reception) if same else Decision(Reception.REFUSED, "ack_conflict")


def state_on_delivery(
    early: Outcome | None, delivered_at: datetime, ack_deadline: datetime
) -> State | None:
    """Where a command goes on at the moment it is delivered, if anywhere.

    A report that came early, before the deadline, is applied. Without one, a delivery after the
    deadline is timed out at once: the deadline counts from dispatch, not from delivery.
    """
    if early is not None:
        return STATE_AFTER[early]
    return State.TIMED_OUT if delivered_at >= ack_deadline else None
