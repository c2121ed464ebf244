"""How the rest of the code sends a webhook: it makes rows, and the engine does the rest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models.functions import Now

from organizations import exact_json, prepared
from organizations.clock import database_now, rfc3339
from organizations.ids import new_id
from webhooks import policies
from webhooks.models import Delivery, Endpoint, Event
from webhooks.rules import event_types
from webhooks.rules.policies import PING

# The channel on which PostgreSQL wakes the engine when the transaction commits.
DUE_CHANNEL = "webhooks_due"

SUBSCRIBERS = """
SELECT id FROM webhooks_endpoint
 WHERE organization_id = ANY(%s) AND enabled AND event_types <> '{}'
"""


@dataclass(frozen=True)
class Publication:
    """A fact to tell an organization's subscribers: ``data`` is a JSON object with exact numbers, ``at``
    when it happened by the database's clock (None: now), ``hops`` how many events led to it.
    """

    organization_id: UUID
    type: str
    data: dict[str, Any]
    at: datetime | None = None
    idempotency_key: str | None = None
    hops: int = 0


def publish(
    organization_id: UUID,
    type: str,
    data: dict[str, Any],
    idempotency_key: str | None = None,
    hops: int = 0,
) -> Event:
    """Make one event, with one delivery for each endpoint that subscribes to its type.

    Raises IntegrityError when the organization has an event of that idempotency key.
    """
    [event] = publish_many(
        [Publication(organization_id, type, data, idempotency_key=idempotency_key, hops=hops)]
    )
    return Event(**event._asdict())


class Published(NamedTuple):
    """An event as it was made, with the names of the model."""

    id: UUID
    organization_id: UUID
    type: str
    body: bytes
    published: bool
    idempotency_key: str | None
    hops: int
    created_at: datetime


def publish_many(publications: Sequence[Publication]) -> list[Published]:
    """Make these events in the transaction of what they tell, in their order.

    The number of statements depends on nothing: one reads the subscribers, one makes the events, and
    where anybody subscribes, one makes all deliveries and one wakes the engine.

    No endpoint is locked. Most events are published under the locks of commands, and endpoints come
    before commands in the order of locks: to lock one here would invite deadlocks. So an endpoint that
    is being disabled in this very moment may still get a delivery. None is sent, because a claim takes
    from enabled endpoints only, and ``endpoints.fail_stranded`` ends it within a second.
    """
    if not publications:
        return []
    with transaction.atomic(savepoint=False):
        now = database_now() if any(p.at is None for p in publications) else None
        subscribers = _subscribers({p.organization_id for p in publications})
        events = [_event(p, p.at or now) for p in publications]
        prepared.insert(Event, Published._fields, events)
        deliveries = [
            _delivery(event, endpoint)
            for event in events
            for endpoint in subscribers[event.organization_id]
            if event_types.is_subscribed(endpoint.event_types, event.type)
        ]
        if deliveries:
            Delivery.objects.bulk_create(deliveries)
            wake_engine()
    return events


def _subscribers(organization_ids: Iterable[UUID]) -> dict[UUID, list[Endpoint]]:
    """Enabled endpoints (an archived one is not) that subscribe to anything, by organization."""
    found: defaultdict[UUID, list[Endpoint]] = defaultdict(list)
    # Every recorded batch asks this, and most organizations subscribe to nothing.
    if ids := prepared.execute(SUBSCRIBERS, [list(organization_ids)]):
        for endpoint in Endpoint.objects.filter(pk__in=[pk for (pk,) in ids]).order_by("pk"):
            found[endpoint.organization_id].append(endpoint)
    return found


def _event(publication: Publication, at: datetime | None) -> Published:
    assert at is not None
    event_id = new_id()
    return Published(
        id=event_id,
        organization_id=publication.organization_id,
        type=publication.type,
        body=_body(event_id, publication.type, at, publication.data),
        published=True,
        idempotency_key=publication.idempotency_key,
        hops=publication.hops,
        created_at=at,
    )


def _body(event_id: UUID, event_type: str, at: datetime, data: dict[str, Any]) -> bytes:
    """What the receivers of an event read."""
    told = {"id": str(event_id), "type": event_type, "timestamp": rfc3339(at), "data": data}
    return exact_json.dumps(told).encode()


def send_to(
    endpoint: Endpoint, event_type: str, body: bytes, *, command_id: UUID | None = None
) -> Delivery:
    """Freeze ``body`` as an event addressed to one endpoint and queue its delivery, due at once.

    Call it inside a transaction: nothing is sent before that commits, and the commit itself is what
    wakes the engine, so no delivery is forgotten between the two.
    """
    event = Event(organization_id=endpoint.organization_id, type=event_type, body=body)
    return _send(event, endpoint, command_id=command_id)


def ping(endpoint: Endpoint, data: dict[str, Any]) -> Delivery:
    """The same with a test in the form of a published event, so that a receiver reads it as it reads
    those. It counts for no rule.
    """
    event_id, at = new_id(), database_now()
    event = Event(
        id=event_id,
        organization_id=endpoint.organization_id,
        type=event_types.PING,
        body=_body(event_id, event_types.PING, at, data),
        created_at=at,
    )
    return _send(event, endpoint, is_ping=True)


def _send(
    event: Event, endpoint: Endpoint, *, command_id: UUID | None = None, is_ping: bool = False
) -> Delivery:
    event.save(force_insert=True)
    delivery = _delivery(event, endpoint, command_id=command_id, is_ping=is_ping)
    delivery.save(force_insert=True)
    wake_engine()
    return delivery


def _delivery(
    event: Event | Published,
    endpoint: Endpoint,
    *,
    command_id: UUID | None = None,
    is_ping: bool = False,
) -> Delivery:
    """A delivery that is due at once, not yet saved. It keeps the policy that it starts with."""
    return Delivery(
        organization_id=event.organization_id,
        endpoint=endpoint,
        event_id=event.id,
        command_id=command_id,
        is_ping=is_ping,
        **policies.kept(PING if is_ping else endpoint.schedule),
        next_attempt_at=Now(),
    )


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
