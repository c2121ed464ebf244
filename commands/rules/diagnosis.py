"""What happened to a command, whose side it is on, and what to do next: in words, from the facts alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from commands.rules.states import State


@dataclass(frozen=True)
class AttemptFacts:
    """What is known of one attempt; ``verdict`` is empty while it is on the wire."""

    number: int
    verdict: str
    status_code: int | None = None
    phase: str = ""
    error_kind: str = ""
    error: str = ""
    location: str = ""


def in_utc(at: datetime) -> str:
    """``2026-01-31 09:30:00 UTC``"""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True)
class CommandFacts:
    """What is known of the command, and how its times are worded."""

    state: State
    dispatch_refusal: str = ""
    failure_reason: str = ""
    delivered_at: datetime | None = None
    ack_deadline: datetime | None = None
    next_attempt_at: datetime | None = None
    attempt_in_flight: bool = False
    attempts_planned: int = 0
    worded: Callable[[datetime], str] = in_utc


@dataclass(frozen=True)
class Diagnosis:
    """A code for programs, two sentences for people: what happened, and what to do next."""

    code: str
    summary: str
    next_step: str


REFUSALS: Final = {
    "dataset_unarmed": (
        "The dispatch was refused: the dataset is not armed.",
        "Arm the dataset, then dispatch again.",
    ),
    "no_endpoint": (
        "The dispatch was refused: no endpoint receives this dataset's commands.",
        "Register an endpoint that receives commands, or choose one for the dataset.",
    ),
    "endpoint_disabled": (
        "The dispatch was refused: the endpoint is disabled.",
        "An owner tests the endpoint and enables it again; then dispatch again.",
    ),
}

UNREACHABLE_WORDS: Final = {
    "dns": "its name does not resolve",
    "tls": "the TLS handshake fails (certificate or protocol)",
    "connection_refused": "nothing accepts the connection",
    "connection_reset": "it closes the connection without an answer",
    "protocol": "what answers is not HTTP",
    "blocked_address": "its address is not one that webhooks may go to",
}
# Phases that end before anything is sent. An attempt of which the phase is unknown may have arrived.
BEFORE_SENDING: Final = ("name", "connect", "tls")
# What attempts have in common that failed alike.
FAMILY_WORDS: Final = {
    "errors": "answered with an error",
    "unreachable": "could not be reached",
    "slow": "did not answer within 10 s",
    "refused": "refused it",
    "redirected": "redirected it",
    "lost": "whose outcome we lost",
}


def diagnose(command: CommandFacts, attempts: Sequence[AttemptFacts]) -> Diagnosis:
    """The diagnosis of a command with its attempts, oldest first."""
    match command.state:
        case State.LOGGED:
            return _not_dispatched(command)
        case State.QUEUED:
            return _retrying(command, attempts)
        case State.DELIVERED:
            return Diagnosis(
                "awaiting_ack",
                "The receiver has taken it; we wait for the report of what the vehicle did"
                f"{_when(command, ', until ', command.ack_deadline)}.",
                "Nothing to do before the deadline.",
            )
        case State.FAILED if command.failure_reason == "endpoint_disabled":
            return Diagnosis(
                "endpoint_disabled",
                f"The endpoint was disabled before the command was delivered{_after(attempts)}.",
                "An owner tests the endpoint and enables it. Then reissue the command: an old one is"
                " never sent after the fact.",
            )
        case State.FAILED:
            return _failed(attempts)
        case State.TIMED_OUT if _too_late(command):
            return Diagnosis(
                "delivered_too_late_to_ack",
                "It was delivered only after its deadline, so no report could count.",
                "Find out what the vehicle did, and why the receiver took so long. Reissue with a"
                " longer deadline if it still has to be done.",
            )
        case _:
            return SETTLED[command.state]


SETTLED: Final = {
    State.TIMED_OUT: Diagnosis(
        "not_acknowledged",
        "Delivered fine, never acknowledged: nobody knows what the vehicle did.",
        "Ask the integrator, or look at the vehicle, before you reissue: it may have been carried out.",
    ),
    State.ACKED: Diagnosis(
        "acked",
        "The integrator reported success.",
        "Nothing to do: this command is finished.",
    ),
    State.NACKED: Diagnosis(
        "nacked",
        "The integrator reported that the vehicle rejected it.",
        "Read the report's detail on the timeline; reissue when the cause is gone.",
    ),
    State.RETRACTED: Diagnosis(
        "retracted",
        "An operator withdrew it. No further attempt starts.",
        "What was already on the wire cannot be recalled: see the attempts. Reissue if it is wanted"
        " after all.",
    ),
}


def _not_dispatched(command: CommandFacts) -> Diagnosis:
    if command.dispatch_refusal in REFUSALS:
        return Diagnosis("dispatch_refused", *REFUSALS[command.dispatch_refusal])
    return Diagnosis(
        "never_dispatched",
        "It was issued and never dispatched: nothing was sent.",
        "Dispatch it, or retract it if it is not wanted any more.",
    )


def _retrying(command: CommandFacts, attempts: Sequence[AttemptFacts]) -> Diagnosis:
    number = len(attempts) if command.attempt_in_flight else len(attempts) + 1
    position = f"attempt {number} of {command.attempts_planned}"
    finished = [attempt for attempt in attempts if attempt.verdict]
    last = f" The last one: {_words(finished[-1])}." if finished else ""
    if command.attempt_in_flight:
        return Diagnosis("retrying", f"On the wire: {position}.{last}", "Wait for its answer.")
    return Diagnosis(
        "retrying",
        f"Waiting for {position}{_when(command, ', due at ', command.next_attempt_at)}.{last}",
        "Nothing to do: it goes on by itself. Retract it if it is not wanted any more.",
    )


def _failed(attempts: Sequence[AttemptFacts]) -> Diagnosis:
    last = attempts[-1] if attempts else AttemptFacts(0, "")
    family = _family(last)
    families = {_family(attempt) for attempt in attempts} - {"lost"}
    if family in ("refused", "redirected") or last.error_kind == "blocked_address":
        return _ended_by(family, last)
    if len(families) == 1:
        return _always(families.pop(), attempts)
    mix = ", ".join(f"{_count(attempts, name)} {FAMILY_WORDS[name]}" for name in sorted(families))
    return Diagnosis(
        "receiver_unstable",
        f"Every attempt failed, not always in the same way: {mix or 'all of them were lost'}.",
        "Have the integrator look at the receiver's log for these minutes, then reissue.",
    )


def _ended_by(family: str, last: AttemptFacts) -> Diagnosis:
    if family == "redirected":
        target = f" to {last.location}" if last.location else ""
        return Diagnosis(
            "receiver_redirected",
            f"The receiver redirected us{target} ({last.status_code}); redirects are never followed.",
            "Store the final URL at the endpoint, then reissue.",
        )
    if family == "refused":
        return Diagnosis(
            "receiver_refused",
            f"The receiver refused it with {last.status_code}, and we stopped.",
            "Ask the integrator whether that was deliberate. If not, have it mended and reissue.",
        )
    return Diagnosis(
        "unreachable",
        f"We could not send it: {UNREACHABLE_WORDS[last.error_kind]}.",
        "Correct the endpoint's URL, then reissue.",
    )


def _always(family: str, attempts: Sequence[AttemptFacts]) -> Diagnosis:
    tried = f"all {len(attempts)} attempts" if len(attempts) > 1 else "the only attempt"
    if family == "errors":
        codes = ", ".join(sorted({str(a.status_code) for a in attempts if a.status_code}))
        return Diagnosis(
            "receiver_errors",
            f"We reached the receiver and it answered {tried} with an error ({codes}).",
            "The fault is on the receiver's side. Have it mended, then reissue.",
        )
    arrived = any(attempt.phase not in BEFORE_SENDING for attempt in attempts)
    if family == "slow" and not arrived:
        return Diagnosis(
            "receiver_too_slow",
            f"No connection to the receiver within 10 s, in {tried}. Nothing was sent.",
            "Check that the receiver runs and that no firewall drops what we send, then reissue.",
        )
    if family == "slow":
        return Diagnosis(
            "receiver_too_slow",
            f"The receiver did not answer within 10 s, in {tried}. It may have processed what"
            " it was sent.",
            "Have the receiver answer at once and work afterwards, then reissue.",
        )
    ways = "; ".join(sorted({UNREACHABLE_WORDS[a.error_kind] for a in attempts if a.error_kind}))
    if arrived and any(attempt.error_kind == "connection_reset" for attempt in attempts):
        return Diagnosis(
            "unreachable",
            f"We had no answer from the receiver in {tried}: {ways}. It may have processed what it"
            " was sent.",
            "Look for it in the receiver's log before you reissue: it may have been carried out.",
        )
    return Diagnosis(
        "unreachable",
        f"We could not reach the receiver in {tried}: {ways}.",
        "Check the endpoint's URL and certificate, then reissue.",
    )


def _family(attempt: AttemptFacts) -> str:
    if attempt.status_code is not None:
        if 300 <= attempt.status_code <= 399:
            return "redirected"
        later = attempt.status_code < 200 or attempt.status_code == 429
        return "errors" if later or attempt.status_code >= 500 else "refused"
    if attempt.error_kind == "timeout":
        return "slow"
    return "unreachable" if attempt.error_kind else "lost"


def _words(attempt: AttemptFacts) -> str:
    if attempt.status_code is not None:
        return f"the receiver answered {attempt.status_code}"
    return attempt.error.rstrip(".") or "no outcome is known"


def _count(attempts: Sequence[AttemptFacts], family: str) -> int:
    return sum(1 for attempt in attempts if _family(attempt) == family)


def _after(attempts: Sequence[AttemptFacts]) -> str:
    return f", after {len(attempts)} attempt{'s' if len(attempts) > 1 else ''}" if attempts else ""


def _when(command: CommandFacts, words: str, at: datetime | None) -> str:
    return f"{words}{command.worded(at)}" if at else ""


def _too_late(command: CommandFacts) -> bool:
    return bool(
        command.delivered_at
        and command.ack_deadline
        and command.delivered_at >= command.ack_deadline
    )
