"""Why a delivery stands where it stands, and what to do, in words. Values in, sentences out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from webhooks.console.rows import ERROR_WORDS
from webhooks.rules.verdicts import ErrorKind, FailureReason, Verdict

READ_BACK: Final = "It is not sent again: the receiver reads what it missed with GET /api/events."
PING_AGAIN: Final = "Ping it again when the receiver is mended."


@dataclass(frozen=True)
class Last:
    """The newest attempt that has ended."""

    number: int
    verdict: str
    status_code: int | None
    error_kind: str

    @property
    def words(self) -> str:
        """Such as ``was answered with 503``."""
        if self.verdict == Verdict.LOST:
            return "was lost on our side: nobody knows whether it arrived"
        if self.status_code is not None:
            return f"was answered with {self.status_code}"
        return f"had no answer: {ERROR_WORDS.get(self.error_kind, 'broken')}"


@dataclass(frozen=True)
class Standing:
    """What is known of a delivery. ``flying`` while an attempt is on the wire."""

    state: str
    failure_reason: str
    attempts: int
    planned: int
    flying: bool
    is_ping: bool
    last: Last | None


@dataclass(frozen=True)
class Why:
    """What happened, and what to do now."""

    what: str
    next_step: str


def why(standing: Standing) -> Why:
    """Explain a delivery."""
    match standing.state:
        case "pending":
            return Why(
                _going_on(standing), "Nothing is to be done: the schedule goes on by itself."
            )
        case "delivered":
            return Why(_delivered(standing), "")
        case "cancelled":
            return Why("It was withdrawn before it was delivered.", "No further attempt starts.")
        case _:
            return Why(_failed(standing), _after_failing(standing))


def _going_on(standing: Standing) -> str:
    if standing.flying:
        return f"Attempt {standing.attempts} of {standing.planned} is on the wire."
    if standing.last is None:
        return "The first attempt is about to start."
    follows = f"Attempt {standing.attempts + 1} of {standing.planned} follows"
    return f"{follows}: attempt {standing.last.number} {standing.last.words}."


def _delivered(standing: Standing) -> str:
    if standing.last is None:
        return "It was delivered."
    return f"Delivered: attempt {standing.last.number} {standing.last.words}."


def _failed(standing: Standing) -> str:
    last = standing.last
    if standing.failure_reason == FailureReason.ENDPOINT_DISABLED:
        return "Its endpoint was disabled before it was delivered."
    if last is None:
        return "It failed before anything was sent."
    if standing.failure_reason == FailureReason.REFUSED:
        if last.error_kind == ErrorKind.BLOCKED_ADDRESS:
            return "The endpoint's name leads to an address that may not be connected to."
        return f"The receiver refused it: attempt {last.number} {last.words}, which ends it."
    if standing.planned == 1:
        return f"The only attempt {last.words}."
    return f"None of {standing.planned} attempts delivered it; the last {last.words}."


def _after_failing(standing: Standing) -> str:
    if standing.is_ping:
        return PING_AGAIN
    if standing.failure_reason == FailureReason.ENDPOINT_DISABLED:
        return f"Enabling the endpoint replays nothing. {READ_BACK}"
    if standing.failure_reason == FailureReason.REFUSED:
        return f"Was that deliberate? {READ_BACK}"
    return f"Have the receiver looked at. {READ_BACK}"
