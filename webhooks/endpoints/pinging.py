"""A test of one endpoint: how an owner sees that a receiver works before enabling it again."""

from __future__ import annotations

from uuid import UUID

from django.db import transaction

from organizations import audit
from organizations.actors import Actor
from webhooks import publishing
from webhooks.endpoints.refusals import Refused
from webhooks.endpoints.rows import locked
from webhooks.models import Delivery


def ping(actor: Actor, endpoint_id: UUID) -> Delivery:
    """Send one test event to the endpoint, enabled or not: one attempt, at once, which counts for no rule.

    Raises Refused for an archived endpoint.
    """
    actor.require("endpoints:write")
    with transaction.atomic():
        endpoint = locked(actor, endpoint_id)
        if endpoint.archived_at:
            raise Refused("endpoint_archived")
        told = {"endpoint": {"id": str(endpoint.pk), "name": endpoint.name}}
        delivery = publishing.ping(endpoint, told)
        audit.record(actor, "endpoint.ping", endpoint, after={"deliveryId": str(delivery.pk)})
    return delivery
