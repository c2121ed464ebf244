"""When an endpoint has failed too often.

Outcomes are those since the endpoint was last enabled (or edited), newest first, without lost attempts
and pings: neither says anything about the receiver.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from webhooks.rules.policies import DisableRule


@dataclass(frozen=True)
class Health:
    """How an endpoint does under its rule.

    ``recent_outcomes`` are "delivered" or "failed", newest first, the last few of them.
    """

    recent_outcomes: tuple[str, ...]
    consecutive_failures: int
    failures_until_disabled: int

    @property
    def failed_too_often(self) -> bool:
        return self.failures_until_disabled == 0


def judge(rule: DisableRule, successes: Sequence[bool], shown: int | None = None) -> Health:
    """Apply the rule to the outcomes of what it counts (attempts or deliveries), newest first, and keep
    ``shown`` of them (all, unless said) for people to look at.
    """
    failures = sum(1 for _ in itertools.takewhile(lambda success: not success, successes))
    return Health(
        recent_outcomes=tuple("delivered" if one else "failed" for one in successes[:shown]),
        consecutive_failures=failures,
        failures_until_disabled=max(rule.count - failures, 0),
    )
