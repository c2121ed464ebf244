"""Events as the API takes and shows them."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from organizations.api.fields import Count, Instant, JsonObject, Text
from organizations.api.inputs import Input
from organizations.api.paging import DEFAULT_LIMIT, MAX_LIMIT
from organizations.clock import rfc3339
from webhooks.models import Event
from webhooks.rules import event_types


class NewEventInput(Input):
    """An event to publish."""

    type = Text(
        source="event_type",
        max_length=event_types.MAX_LENGTH,
        help_text="Lower-case words with dots between them, such as `order.created`.",
    )
    data = JsonObject(help_text="Sent on with every digit.")  # type: ignore[assignment]
    idempotencyKey = Text(
        source="idempotency_key",
        max_length=200,
        required=False,
        help_text="Your own name for it: the same key is the same event, for good.",
    )

    def validate_type(self, event_type: str) -> str:
        if not event_types.is_type(event_type):
            raise serializers.ValidationError(
                "Must be words of a-z, 0-9 and _ with dots between them, such as order.created."
            )
        return event_type


class EventQuery(Input):
    """Which events."""

    after = Text(
        required=False,
        help_text="The `nextCursor` of the page before, or an event's id; else from the beginning.",
    )
    type = Text(
        default=event_types.WILDCARD,
        help_text="A type, or all types with a prefix, such as `command.*`.",
    )
    limit = Count(
        default=DEFAULT_LIMIT,
        min_value=1,
        max_value=MAX_LIMIT,
        help_text="At most so many; fewer where events are large.",
    )

    def validate_type(self, wanted: str) -> str:
        if not event_types.is_subscription(wanted):
            raise serializers.ValidationError("Must be a type or a prefix, such as command.*.")
        return wanted


class ReceiptSerializer(serializers.Serializer[Event]):
    """An event that was taken."""

    id = serializers.CharField()
    type = serializers.CharField()
    createdAt = Instant(source="created_at")
    deliveries = serializers.IntegerField(
        source="deliveries.count", help_text="Endpoints that it is sent to."
    )


class EventSerializer(serializers.Serializer[Event]):
    """An event, member by member as in the body that subscribers receive."""

    id = serializers.CharField()
    type = serializers.CharField()
    timestamp = serializers.DateTimeField(source="value.timestamp", help_text="When it happened.")
    data = JsonObject(source="value.data")  # type: ignore[assignment]

    def to_representation(self, event: Event) -> dict[str, Any]:
        return event.value


class EventDetailSerializer(EventSerializer):
    """An event with what became of it here."""

    createdAt = Instant(source="created_at", help_text="When it was put on record.")
    idempotencyKey = serializers.CharField(source="idempotency_key", allow_null=True)
    hops = serializers.IntegerField(help_text="How many events led to it.")
    deliveries = serializers.IntegerField(
        source="deliveries.count", help_text="Endpoints that it is sent to."
    )

    def to_representation(self, event: Event) -> dict[str, Any]:
        return {
            **event.value,
            "createdAt": rfc3339(event.created_at),
            "idempotencyKey": event.idempotency_key,
            "hops": event.hops,
            "deliveries": event.deliveries.count(),
        }


class EventPageSerializer(serializers.Serializer[Any]):
    """Events, oldest first."""

    items = EventSerializer(many=True)
    nextCursor = serializers.CharField(
        help_text="Read on from here, now or later: it is there on the last page too."
    )


class EventTypeSerializer(serializers.Serializer[Any]):
    """A type of events that the console sends."""

    type = serializers.CharField(source="name")
    description = serializers.CharField()
    subscribable = serializers.BooleanField(
        help_text="Sent to whoever subscribes to it; else to the one endpoint that it concerns."
    )


class EventTypesSerializer(serializers.Serializer[Any]):
    """All of them, always."""

    items = EventTypeSerializer(many=True)
