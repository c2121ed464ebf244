"""An endpoint's row: found within its organization, locked, and as the audit trail keeps it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from organizations.actors import Actor
from webhooks.models import Endpoint


def locked(actor: Actor, endpoint_id: UUID) -> Endpoint:
    """The endpoint, locked no harder than needed: a claim that holds deliveries of it must still be
    able to refer to it when it commits, or the two would wait for each other.
    """
    return Endpoint.objects.select_for_update(no_key=True).get(
        pk=endpoint_id, organization=actor.organization
    )


def facts(endpoint: Endpoint) -> dict[str, Any]:
    """What the audit trail keeps of an endpoint."""
    return {
        "name": endpoint.name,
        "url": endpoint.url,
        "policy": endpoint.policy,
        "receivesCommands": endpoint.receives_commands,
        "eventTypes": endpoint.event_types,
        "description": endpoint.description,
        "maxInFlight": endpoint.max_in_flight,
        "enabled": endpoint.enabled,
        "disabledReason": endpoint.disabled_reason,
    }
