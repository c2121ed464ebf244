"""An endpoint's row: found within its organization, locked, and as the audit trail keeps it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, Subquery
from django.db.models.functions import Coalesce, Now

from organizations import prepared
from organizations.actors import Actor
from webhooks.models import Attempt, Endpoint

# A turn at an endpoint. Dispatches share it, and whoever locks the row to change it takes it before. For
# newcomers who share a row pass a writer that waits for it: a flood of dispatches to an endpoint would
# hold off the recording of its failures, and the disabling that is to stop it. The second key tells these
# locks from those of datasets.
SHARE = "SELECT pg_advisory_xact_lock_shared(hashtextextended(%s::uuid::text, 1))"
TAKE = """
SELECT pg_advisory_xact_lock(hashtextextended(ordered.id::text, 1))
  FROM (SELECT id FROM unnest(%s::uuid[]) AS id ORDER BY id) AS ordered
"""


def queue_up(endpoint_id: UUID) -> None:
    """Wait behind whoever changes the endpoint, or waits to, and have the next one wait for us."""
    prepared.execute(SHARE, [endpoint_id])


def go_first(endpoint_ids: Collection[UUID]) -> None:
    """Come before all dispatches to these endpoints that have not begun."""
    prepared.execute(TAKE, [list(endpoint_ids)])


def locked(actor: Actor, endpoint_id: UUID) -> Endpoint:
    """The endpoint, locked no harder than needed: a claim that holds deliveries of it must still be
    able to refer to it when it commits, or the two would wait for each other.
    """
    go_first([endpoint_id])
    return Endpoint.objects.select_for_update(no_key=True).get(
        pk=endpoint_id, organization=actor.organization
    )


def take_turns(actor: Actor) -> None:
    """Make those wait who register or edit endpoints of the organization at the same time: which is the
    default depends on all of them. Comes before any endpoint is locked.
    """
    organizations = type(actor.organization).objects.select_for_update(no_key=True)
    organizations.get(pk=actor.organization.pk)


def counters_from_zero() -> dict[str, Any]:
    """The fields that make every attempt so far count for no rule, those on the wire too."""
    # A range with one endpoint in it: with a plain equality the newest attempts of all may be walked.
    own = Attempt.objects.filter(endpoint__gte=OuterRef("pk"), endpoint__lte=OuterRef("pk"))
    newest = own.order_by("endpoint_id", "-pk").values("pk")[:1]
    return {"health_since": Now(), "health_after": Coalesce(Subquery(newest), 0)}


def facts(endpoint: Endpoint) -> dict[str, Any]:
    """What the audit trail keeps of an endpoint. Of its headers the names: values may be credentials."""
    return {
        "name": endpoint.name,
        "url": endpoint.url,
        "policy": endpoint.policy,
        "receivesCommands": endpoint.receives_commands,
        "isDefault": endpoint.is_default,
        "eventTypes": endpoint.event_types,
        "description": endpoint.description,
        "headers": endpoint.header_names,
        "maxInFlight": endpoint.max_in_flight,
        "enabled": endpoint.enabled,
        "disabledReason": endpoint.disabled_reason,
        "archived": endpoint.archived_at is not None,
    }
