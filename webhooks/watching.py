"""Which of an organization's endpoints somebody should look at now: disabled, failing, or behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from organizations import prepared
from organizations.models import Organization
from webhooks.endpoints.health import health_of
from webhooks.models import Endpoint
from webhooks.rules.health import Health

# An attempt starts within a quarter of a second after its time. Five seconds are no jitter any more.
LATE_AFTER: Final = timedelta(seconds=5)
# One failure is what retries are for. Three in a row are a receiver in trouble.
FAILING_AFTER: Final = 3
# Endpoints that are looked at, those that receive commands first: some 20 ms, were there so many.
AT_MOST: Final = 500

# Endpoints that are disabled, or whose last two outcomes that count are failures, or whose oldest work
# should be done: a few probes of indexes each, and most of the time no row at all. They ask for ranges with
# one endpoint in it: with a plain equality the newest attempts, or the backlog, of all may be walked.
SUSPECTS = """
SELECT e.id, oldest.due_at, (
    SELECT count(*) FROM webhooks_delivery d
     WHERE d.endpoint_id = e.id AND d.lease_until IS NOT NULL)
  FROM (SELECT id, enabled, health_after FROM webhooks_endpoint
         WHERE organization_id = %(organization)s::uuid AND archived_at IS NULL
         ORDER BY is_default DESC, receives_commands DESC, name, id LIMIT %(at_most)s::int) e
  LEFT JOIN LATERAL (
    SELECT d.next_attempt_at AS due_at FROM webhooks_delivery d
     WHERE d.endpoint_id BETWEEN e.id AND e.id AND d.next_attempt_at IS NOT NULL
     ORDER BY d.endpoint_id, d.next_attempt_at LIMIT 1) oldest ON true
 WHERE NOT e.enabled OR oldest.due_at < %(late)s::timestamptz OR 2 = (
    SELECT count(*) FILTER (WHERE verdict <> 'delivered') FROM (
        SELECT a.verdict
          FROM webhooks_attempt a JOIN webhooks_delivery d ON d.id = a.delivery_id
         WHERE a.endpoint_id BETWEEN e.id AND e.id AND a.id > e.health_after
           AND a.finished_at IS NOT NULL AND a.verdict <> 'lost' AND NOT d.is_ping
         ORDER BY a.endpoint_id, a.id DESC LIMIT 2) newest)
"""


@dataclass(frozen=True)
class Ailing:
    """An endpoint with its health."""

    endpoint: Endpoint
    health: Health


@dataclass(frozen=True)
class Behind:
    """An endpoint whose oldest work was due at ``due_at``; ``in_flight`` attempts are under way."""

    endpoint: Endpoint
    due_at: datetime
    in_flight: int


@dataclass(frozen=True)
class Watched:
    """What there is to look at. The most urgent of each comes first."""

    disabled: Sequence[Ailing]
    failing: Sequence[Ailing]
    behind: Sequence[Behind]


def watch(organization: Organization, now: datetime) -> Watched:
    """Look at the organization's endpoints; at most three queries."""
    late = now - LATE_AFTER
    asked = {"organization": organization.pk, "late": late, "at_most": AT_MOST}
    suspects = prepared.execute(SUSPECTS, asked)
    found = Endpoint.objects.in_bulk([pk for pk, *_ in suspects])
    healths = health_of(found.values())
    ailing = [Ailing(endpoint, healths[pk]) for pk, endpoint in found.items()]
    disabled = [one for one in ailing if not one.endpoint.enabled]
    behind = [Behind(found[pk], due, flying) for pk, due, flying in suspects if due and due < late]
    return Watched(
        disabled=sorted(disabled, key=_disabled_at, reverse=True),
        failing=sorted(filter(_is_failing, ailing), key=_failures_left),
        behind=sorted(behind, key=lambda one: one.due_at),
    )


def _is_failing(one: Ailing) -> bool:
    """Failing for a while, or about to be disabled."""
    failures = one.health.consecutive_failures
    about_to_be = failures > 1 and _failures_left(one) == 1
    return one.endpoint.enabled and (failures >= FAILING_AFTER or about_to_be)


def _failures_left(one: Ailing) -> int:
    return one.health.failures_until_disabled


def _disabled_at(one: Ailing) -> datetime:
    assert one.endpoint.disabled_at
    return one.endpoint.disabled_at
