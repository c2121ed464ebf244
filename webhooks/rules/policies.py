"""Delivery policies: how often, how far apart, and when an endpoint has failed too often.

A schedule is a contract: receivers size their deduplication window against it. So there is no jitter,
and a ``Retry-After`` header is recorded but moves nothing.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class RuleKind(StrEnum):
    """What a disable rule counts."""

    ATTEMPTS_IN_A_ROW = "attempts_in_a_row"
    DELIVERIES_IN_A_ROW = "deliveries_in_a_row"


@dataclass(frozen=True)
class DisableRule:
    """Disable the endpoint when its last ``count`` attempts (or deliveries) all failed."""

    kind: RuleKind
    count: int


@dataclass(frozen=True)
class Policy:
    """A retry schedule with its verdict on refusals and its disable rule.

    ``waits_s`` has one wait an attempt, in seconds, each counted from the end of the attempt before;
    the first is 0. ``stops_on_refusal``: a 4xx (but 429), a 3xx or a blocked address ends the delivery.
    """

    name: str
    waits_s: tuple[int, ...]
    stops_on_refusal: bool
    disable_rule: DisableRule

    @property
    def attempts(self) -> int:
        """Attempts at most, the first included."""
        return len(self.waits_s)

    @property
    def accumulated_s(self) -> tuple[int, ...]:
        """When each attempt is due, in seconds after the first, if attempts took no time."""
        return tuple(itertools.accumulate(self.waits_s))

    def wait_after(self, number: int) -> int | None:
        """Seconds from the end of attempt ``number`` (from 1) to the next; None after the last."""
        return self.waits_s[number] if number < self.attempts else None


COMMAND: Final = Policy(
    name="command",
    waits_s=(0, 5, 25, 125, 625),
    stops_on_refusal=True,
    disable_rule=DisableRule(RuleKind.ATTEMPTS_IN_A_ROW, 20),
)
TELEMETRY: Final = Policy(
    name="telemetry",
    waits_s=(0, *(30 * 2**n for n in range(12))),
    stops_on_refusal=True,
    disable_rule=DisableRule(RuleKind.ATTEMPTS_IN_A_ROW, 20),
)
EVENT: Final = Policy(
    name="event",
    waits_s=(0, 5, 10),
    stops_on_refusal=False,
    disable_rule=DisableRule(RuleKind.DELIVERIES_IN_A_ROW, 5),
)
POLICIES: Final[dict[str, Policy]] = {p.name: p for p in (COMMAND, TELEMETRY, EVENT)}
