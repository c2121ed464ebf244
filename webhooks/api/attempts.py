"""Attempts of one organization, newest first, without reading anybody else's on the way."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from organizations.api import paging
from organizations.api.paging import Fetch
from organizations.models import Organization
from webhooks.models import Attempt

# The newest of each endpoint, straight from the index attempt_newest_by_endpoint, then the newest of
# those: an organization has few endpoints, and no page depends on how many attempts there are. A range with
# one endpoint in it: with a plain equality the newest attempts of all may be walked.
NEWEST = """
SELECT newest.id
  FROM webhooks_endpoint e
 CROSS JOIN LATERAL (
    SELECT a.id FROM webhooks_attempt a
     WHERE a.endpoint_id BETWEEN e.id AND e.id AND a.id < %(before)s
     ORDER BY a.endpoint_id, a.id DESC LIMIT %(count)s) newest
 WHERE e.organization_id = %(organization)s
   AND (%(endpoint)s::uuid IS NULL OR e.id = %(endpoint)s)
 ORDER BY newest.id DESC LIMIT %(count)s
"""
NO_LIMIT = 2**63 - 1


def fetch_for(organization: Organization, asked: dict[str, Any]) -> Fetch[Attempt]:
    """Reads the attempts that the filters ``command_id``, ``event_id`` and ``endpoint_id`` leave."""
    by_delivery = {
        f"delivery__{name}": asked[name] for name in ("command_id", "event_id") if name in asked
    }
    if not by_delivery:
        return _by_endpoint(organization, asked.get("endpoint_id"))
    if "endpoint_id" in asked:
        by_delivery["endpoint_id"] = asked["endpoint_id"]
    return paging.newest_first(
        _with_delivery().filter(delivery__organization=organization, **by_delivery)
    )


def _by_endpoint(organization: Organization, endpoint_id: UUID | None) -> Fetch[Attempt]:
    def fetch(before: str | None, count: int) -> list[Attempt]:
        with connection.cursor() as cursor:
            cursor.execute(
                NEWEST,
                {
                    "before": int(before) if before else NO_LIMIT,
                    "count": count,
                    "organization": organization.pk,
                    "endpoint": endpoint_id,
                },
            )
            newest = [row[0] for row in cursor.fetchall()]
        return list(_with_delivery().filter(pk__in=newest).order_by("-pk"))

    return fetch


def _with_delivery() -> QuerySet[Attempt]:
    return Attempt.objects.select_related("delivery")
