"""How the rest of the code sends a webhook: it makes rows, and the engine does the rest."""

from __future__ import annotations

from uuid import UUID

from django.db import connection
from django.db.models.functions import Now

from webhooks import policies
from webhooks.models import Delivery, Endpoint, Event
from webhooks.rules.policies import PING

# The channel on which PostgreSQL wakes the engine when the transaction commits.
DUE_CHANNEL = "webhooks_due"


def send_to(
    endpoint: Endpoint,
    event_type: str,
    body: bytes,
    *,
    command_id: UUID | None = None,
    is_ping: bool = False,
) -> Delivery:
    """Freeze ``body`` as an event addressed to one endpoint and queue its delivery, due at once.

    A ping is such a delivery that counts for no rule. Call it inside a transaction: nothing is sent before that commits, and the commit itself is what
    wakes the engine, so no delivery is forgotten between the two.
    """
    event = Event.objects.create(
        organization_id=endpoint.organization_id, type=event_type, body=body
    )
    delivery = Delivery.objects.create(
        organization_id=endpoint.organization_id,
        endpoint=endpoint,
        event=event,
        command_id=command_id,
        is_ping=is_ping,
        **policies.kept(PING if is_ping else endpoint.schedule),
        next_attempt_at=Now(),
    )
    wake_engine()
    return delivery


def cancel(delivery_id: UUID) -> bool:
    """Make no further attempt. True when an attempt was on the wire, which cannot be recalled.

    Locks the delivery's row until the transaction ends.
    """
    delivery = Delivery.objects.select_for_update(no_key=True).get(pk=delivery_id)
    if delivery.state == Delivery.State.PENDING:
        Delivery.objects.filter(pk=delivery_id).update(
            state=Delivery.State.CANCELLED, next_attempt_at=None, settled_at=Now()
        )
    return delivery.lease_until is not None


def wake_engine() -> None:
    """Tell every cluster, at commit, that a delivery is due."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, '')", [DUE_CHANNEL])
