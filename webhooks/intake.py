"""Events that an integrator tells of: taken once for each idempotency key, and never round in circles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction

from organizations import audit, exact_json
from organizations.actors import Actor
from webhooks import publishing
from webhooks.models import Event
from webhooks.rules import event_types

# Events in a row at most, each caused by the delivery of the one before. More is a circle: two systems
# that answer each other's events with events. No chain that somebody meant is nearly as long.
MAX_HOPS = 5


class EventRefused(Exception):
    """An event that is not taken; ``code`` is for programs."""

    code: str

    def __init__(self) -> None:
        super().__init__(self.__doc__)


class ReservedType(EventRefused):
    """Only the console tells of what happens to commands and endpoints: choose another type."""

    code = "reserved_type"


class TooManyHops(EventRefused):
    """This event comes at the end of too long a chain of events that caused each other."""

    code = "too_many_hops"


class IdempotencyConflict(EventRefused):
    """The idempotency key stands for an event with another type or other data."""

    code = "idempotency_conflict"


@dataclass(frozen=True)
class Taken:
    """An event, and whether it had been taken before."""

    event: Event
    replayed: bool


def take(
    actor: Actor,
    event_type: str,
    data: dict[str, Any],
    idempotency_key: str | None = None,
    hops: int = 0,
) -> Taken:
    """Publish an event. ``hops`` counts the events that led to it. Raises EventRefused.

    The same key with the same content returns the event that exists, however many ask at once.
    """
    actor.require("events:write")
    if event_types.is_reserved(event_type):
        raise ReservedType
    if hops > MAX_HOPS:
        raise TooManyHops
    try:
        with transaction.atomic():
            event = publishing.publish(
                actor.organization.pk, event_type, data, idempotency_key, hops
            )
            audit.record(actor, "event.publish", event, after={"type": event_type})
    except IntegrityError:
        if idempotency_key is None:
            raise
        return Taken(_same_event(actor, event_type, data, idempotency_key), replayed=True)
    return Taken(event, replayed=False)


def _same_event(actor: Actor, event_type: str, data: dict[str, Any], idempotency_key: str) -> Event:
    event = Event.objects.get(organization=actor.organization, idempotency_key=idempotency_key)
    if event.type != event_type or _content(event.value["data"]) != _content(data):
        raise IdempotencyConflict
    return event


def _content(data: Any) -> str:
    """The order of keys means nothing; every digit does."""
    return exact_json.dumps(data, sort_keys=True)
