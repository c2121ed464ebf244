"""How endpoints do, read from their attempts: by the rule of the policy, and in figures for people.

Counted are attempts that began since the endpoint was last enabled or edited. Lost attempts and pings
say nothing about the receiver.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from webhooks.models import Endpoint
from webhooks.rules import health
from webhooks.rules.health import Health
from webhooks.rules.policies import RuleKind

# Outcomes that the health strip shows. A rule that counts further reads further.
STRIP = 20
# Attempts that the figures are taken from.
SAMPLE = 100

# Both read an endpoint's newest attempts by the index of just those. They ask for a range of endpoints that
# has one in it: with a plain equality the planner may walk the newest attempts of all endpoints instead,
# which takes long for one that is quiet among busy ones.
#
# What a rule counts, newest first: attempts, or the attempts that ended a delivery.
RECENT = """
SELECT wanted.id, recent.delivered
  FROM unnest(%(endpoints)s::uuid[], %(by_delivery)s::boolean[], %(counts)s::int[])
       AS wanted(id, by_delivery, count)
  JOIN webhooks_endpoint e ON e.id = wanted.id
 CROSS JOIN LATERAL (
    SELECT a.verdict = 'delivered' AS delivered
      FROM webhooks_attempt a JOIN webhooks_delivery d ON d.id = a.delivery_id
     WHERE a.endpoint_id BETWEEN e.id AND e.id AND a.id > e.health_after
       AND a.finished_at IS NOT NULL AND a.verdict <> 'lost' AND NOT d.is_ping
       AND (NOT wanted.by_delivery
            OR a.verdict = 'delivered' OR (d.state = 'failed' AND a.number = d.attempts))
     ORDER BY a.endpoint_id, a.id DESC LIMIT wanted.count) recent
"""

FIGURES = """
SELECT e.id, e.health_since, sample.attempts, sample.delivered, sample.median_ms
  FROM webhooks_endpoint e
 CROSS JOIN LATERAL (
    SELECT count(*) AS attempts, count(*) FILTER (WHERE verdict = 'delivered') AS delivered,
           percentile_disc(0.5) WITHIN GROUP (ORDER BY duration_ms) AS median_ms
      FROM (SELECT a.verdict, a.duration_ms
              FROM webhooks_attempt a JOIN webhooks_delivery d ON d.id = a.delivery_id
             WHERE a.endpoint_id BETWEEN e.id AND e.id AND a.id > e.health_after
               AND a.finished_at IS NOT NULL AND a.verdict <> 'lost' AND NOT d.is_ping
             ORDER BY a.endpoint_id, a.id DESC LIMIT %(sample)s) newest) sample
 WHERE e.id = ANY(%(endpoints)s)
"""


@dataclass(frozen=True)
class Figures:
    """An endpoint's last attempts in numbers, at most ``SAMPLE`` of them, none from before ``since``."""

    since: datetime
    attempts: int
    delivered: int
    median_ms: int | None

    @property
    def success_rate(self) -> float | None:
        """The part of the attempts that delivered, 0 to 1; None where there was none."""
        return round(self.delivered / self.attempts, 4) if self.attempts else None


def health_of(endpoints: Iterable[Endpoint]) -> dict[UUID, Health]:
    """The health of each endpoint under the rule of its policy, in one query."""
    rules = {endpoint.pk: endpoint.schedule.disable_rule for endpoint in endpoints}
    if not rules:
        return {}
    outcomes: dict[UUID, list[bool]] = {pk: [] for pk in rules}
    parameters: dict[str, list[Any]] = {
        "endpoints": list(rules),
        "by_delivery": [rule.kind == RuleKind.DELIVERIES_IN_A_ROW for rule in rules.values()],
        "counts": [max(STRIP, rule.count) for rule in rules.values()],
    }
    with connection.cursor() as cursor:
        cursor.execute(RECENT, parameters)
        for endpoint_id, delivered in cursor.fetchall():
            outcomes[endpoint_id].append(delivered)
    return {pk: health.judge(rule, outcomes[pk], STRIP) for pk, rule in rules.items()}


def figures_of(endpoints: Iterable[Endpoint]) -> dict[UUID, Figures]:
    """How each endpoint did lately, in one query."""
    wanted = [endpoint.pk for endpoint in endpoints]
    if not wanted:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(FIGURES, {"endpoints": wanted, "sample": SAMPLE})
        return {pk: Figures(*rest) for pk, *rest in cursor.fetchall()}
