"""How endpoints do under the rules of their policies, read from their attempts."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db import connection

from webhooks.models import Endpoint
from webhooks.rules import health
from webhooks.rules.health import Health
from webhooks.rules.policies import POLICIES, RuleKind

# Outcomes that the health strip shows; no rule looks further back than it has to count.
STRIP = 20

# What a rule counts, newest first: attempts, or the attempts that ended a delivery. Lost attempts and
# pings say nothing about the receiver.
RECENT = """
SELECT wanted.id, recent.delivered
  FROM unnest(%(endpoints)s::uuid[]) AS wanted(id)
  JOIN webhooks_endpoint e ON e.id = wanted.id
 CROSS JOIN LATERAL (
    SELECT a.verdict = 'delivered' AS delivered
      FROM webhooks_attempt a JOIN webhooks_delivery d ON d.id = a.delivery_id
     WHERE a.endpoint_id = e.id AND a.finished_at > e.health_since AND a.verdict <> 'lost'
       AND NOT d.is_ping
       AND (NOT e.policy = ANY(%(by_delivery)s)
            OR a.verdict = 'delivered' OR (d.state = 'failed' AND a.number = d.attempts))
     ORDER BY a.id DESC LIMIT %(strip)s) recent
"""


def health_of(endpoints: Iterable[Endpoint]) -> dict[UUID, Health]:
    """The health of each endpoint under the rule of its policy, in one query."""
    rules = {endpoint.pk: endpoint.schedule.disable_rule for endpoint in endpoints}
    if not rules:
        return {}
    outcomes: dict[UUID, list[bool]] = {pk: [] for pk in rules}
    by_delivery = [
        name
        for name, policy in POLICIES.items()
        if policy.disable_rule.kind == RuleKind.DELIVERIES_IN_A_ROW
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            RECENT,
            {"endpoints": list(rules), "by_delivery": by_delivery, "strip": STRIP},
        )
        for endpoint_id, delivered in cursor.fetchall():
            outcomes[endpoint_id].append(delivered)
    return {pk: health.judge(rule, outcomes[pk]) for pk, rule in rules.items()}
