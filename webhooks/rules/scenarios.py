"""What a simulation is given: a policy, when deliveries come, how receivers answer, and the limits.

Times are whole milliseconds of virtual time from 0.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from webhooks.rules.policies import Policy
from webhooks.rules.verdicts import ErrorKind, Verdict, verdict_on_error, verdict_on_status

UNLIMITED: Final = sys.maxsize
# The whole attempt, from the name to the last header byte.
ATTEMPT_DEADLINE_MS: Final = 10_000
# Arrivals at a rate come in steps this long: short beside a second, long enough to be few.
ARRIVAL_STEP_MS: Final = 100


@dataclass(frozen=True)
class Reply:
    """How a receiver meets an attempt: after ``latency_ms`` a status, or none and the kind of error."""

    latency_ms: int
    status: int | None = 200
    error_kind: str = ""

    def within_deadline(self) -> Reply:
        """What the sender sees of it: a later answer is a timeout."""
        if self.latency_ms <= ATTEMPT_DEADLINE_MS:
            return self
        return Reply(ATTEMPT_DEADLINE_MS, None, ErrorKind.TIMEOUT)

    def verdict(self, policy: Policy) -> Verdict:
        if self.status is not None:
            return verdict_on_status(policy, self.status)
        return verdict_on_error(policy, self.error_kind)


# What meets an attempt that starts at this moment, in milliseconds.
Receiver = Callable[[int], Reply]


def down_until(back_ms: int, down: Reply, up: Reply) -> Receiver:
    """A receiver that is down from the beginning and well from ``back_ms`` on."""
    return lambda started_ms: down if started_ms < back_ms else up


@dataclass(frozen=True)
class Arrival:
    """Deliveries whose first attempt is due at the same moment."""

    at_ms: int
    count: int


def at_once(count: int) -> list[Arrival]:
    return [Arrival(0, count)]


def at_rate(count: int, per_second: int) -> Iterator[Arrival]:
    """``count`` deliveries, so many a second, in steps of ``ARRIVAL_STEP_MS``."""
    come = 0
    for step in itertools.count(1):
        until = min(count, step * per_second * ARRIVAL_STEP_MS // 1000)
        if until > come:
            yield Arrival((step - 1) * ARRIVAL_STEP_MS, until - come)
        if until == count:
            return
        come = until


@dataclass(frozen=True)
class Limits:
    """Attempts in flight: at one endpoint, at one that gave no answer yet or the last time, in all."""

    per_endpoint: int = UNLIMITED
    unproven: int = UNLIMITED
    total: int = UNLIMITED


@dataclass(frozen=True)
class Batches:
    """Rows of one claim and of one recording, at most; of what waits at a disabled endpoint those that end
    together, and how often that is done in a sweep, each second.
    """

    claim: int = 64
    record: int = 100
    end: int = 500
    ends_a_sweep: int = 10


@dataclass(frozen=True)
class Scenario:
    """What is played. Arrivals spread evenly over ``endpoints`` that all behave alike.

    ``disables``: whether the policy's rule disables endpoints. ``followed``: of how many deliveries,
    the first of the first endpoint's first arrival, the story is kept.
    """

    policy: Policy
    arrivals: Sequence[Arrival]
    receiver: Receiver
    endpoints: int = 1
    limits: Limits = Limits()
    batches: Batches = Batches()
    disables: bool = True
    followed: int = 0
