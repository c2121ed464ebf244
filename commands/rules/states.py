"""A command's states and the only moves between them. One table feeds Python and the database's guard."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class State(StrEnum):
    """Where a command stands."""

    LOGGED = "logged"
    QUEUED = "queued"
    DELIVERED = "delivered"
    FAILED = "failed"
    ACKED = "acked"
    NACKED = "nacked"
    TIMED_OUT = "timed_out"
    RETRACTED = "retracted"


TRANSITIONS: Final[tuple[tuple[State, State], ...]] = (
    (State.LOGGED, State.QUEUED),
    (State.LOGGED, State.RETRACTED),
    (State.QUEUED, State.DELIVERED),
    (State.QUEUED, State.FAILED),
    (State.QUEUED, State.RETRACTED),
    (State.DELIVERED, State.ACKED),
    (State.DELIVERED, State.NACKED),
    (State.DELIVERED, State.TIMED_OUT),
    (State.DELIVERED, State.RETRACTED),
    (State.FAILED, State.RETRACTED),
    (State.ACKED, State.RETRACTED),
    (State.NACKED, State.RETRACTED),
    (State.TIMED_OUT, State.RETRACTED),
)
# From here only a retraction leads on.
SETTLED: Final = frozenset(
    {State.FAILED, State.ACKED, State.NACKED, State.TIMED_OUT, State.RETRACTED}
)
# What came to nothing may be sent again, as a new command; anything else may yet be carried out.
REISSUABLE: Final = SETTLED - {State.ACKED}

# Seconds from dispatch to the deadline of the integrator's report.
ACK_TIMEOUT_MIN_S: Final = 30
ACK_TIMEOUT_MAX_S: Final = 3600
ACK_TIMEOUT_DEFAULT_S: Final = 300
