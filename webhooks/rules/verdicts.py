"""What an answer means for a delivery, and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from webhooks.rules.policies import Policy


class Verdict(StrEnum):
    """What one attempt came to."""

    DELIVERED = "delivered"
    RETRY = "retry"
    FAIL = "failed"
    LOST = "lost"


class Phase(StrEnum):
    """How far an attempt came. What ends it before `send` reached nobody; from `send` on the receiver may
    have processed it. `body`: the head of an answer was complete, which is all that counts.
    """

    NAME = "name"
    CONNECT = "connect"
    TLS = "tls"
    SEND = "send"
    HEADERS = "headers"
    BODY = "body"


class ErrorKind(StrEnum):
    """Why an attempt has no status line."""

    TIMEOUT = "timeout"
    DNS = "dns"
    CONNECTION_REFUSED = "connection_refused"
    CONNECTION_RESET = "connection_reset"
    TLS = "tls"
    PROTOCOL = "protocol"
    BLOCKED_ADDRESS = "blocked_address"


class FailureReason(StrEnum):
    """Why a delivery ended without a 2xx."""

    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    REFUSED = "refused"
    ENDPOINT_DISABLED = "endpoint_disabled"


def verdict_on_status(policy: Policy, status: int) -> Verdict:
    """Only the status decides: 2xx delivers; 5xx and 429 say "later"; the rest is a refusal.

    A refusal ends the delivery where the policy stops on refusals. A status below 200 is not a final
    answer at all and counts as broken HTTP.
    """
    if 200 <= status <= 299:
        return Verdict.DELIVERED
    if status < 200 or status == 429 or status >= 500:
        return Verdict.RETRY
    return Verdict.FAIL if policy.stops_on_refusal else Verdict.RETRY


def verdict_on_error(policy: Policy, error_kind: str) -> Verdict:
    """No answer is a reason to try again; an address we may not connect to is a refusal."""
    if error_kind == ErrorKind.BLOCKED_ADDRESS and policy.stops_on_refusal:
        return Verdict.FAIL
    return Verdict.RETRY


@dataclass(frozen=True)
class Waiting:
    """The delivery goes on: the next attempt is due then."""

    next_attempt_at: datetime


@dataclass(frozen=True)
class Delivered:
    """The endpoint answered 2xx."""


@dataclass(frozen=True)
class Failed:
    """The delivery is over without a 2xx."""

    reason: FailureReason


Next = Waiting | Delivered | Failed


def what_follows(
    policy: Policy,
    number: int,
    verdict: Verdict,
    finished_at: datetime,
    endpoint_enabled: bool,
) -> Next:
    """What becomes of a delivery after attempt ``number`` (from 1).

    A 2xx delivers even when the endpoint was disabled meanwhile; anything else at a disabled endpoint
    ends the delivery, because an old command must not fire when somebody enables it days later.
    """
    if verdict == Verdict.DELIVERED:
        return Delivered()
    if verdict == Verdict.FAIL:
        return Failed(FailureReason.REFUSED)
    wait = policy.wait_after(number)
    if wait is None:
        return Failed(FailureReason.ATTEMPTS_EXHAUSTED)
    if not endpoint_enabled:
        return Failed(FailureReason.ENDPOINT_DISABLED)
    return Waiting(finished_at + timedelta(seconds=wait))
