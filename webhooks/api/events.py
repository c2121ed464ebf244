"""Events: told by integrators, read back in order."""

from __future__ import annotations

from http import HTTPStatus

from django.core import signing
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from organizations.api.fields import parse_id
from organizations.api.openapi import operation
from organizations.api.problems import Problem
from organizations.api.views import ApiView, id_of
from webhooks import feed, intake
from webhooks.api.event_serializers import (
    EventDetailSerializer,
    EventPageSerializer,
    EventQuery,
    EventTypesSerializer,
    NewEventInput,
    ReceiptSerializer,
)
from webhooks.models import Event
from webhooks.rules.event_types import CATALOGUE

HOPS = "X-Webhook-Hops"
REPLAYED = "Idempotency-Replayed"
# No place in the feed is lower.
START = 0


class EventListView(ApiView):
    @operation(
        "publishEvent",
        "events:write",
        "Tell the organization's subscribers; the same idempotencyKey again is the same event",
        {HTTPStatus.ACCEPTED: ReceiptSerializer},
        body=NewEventInput,
        problems=[HTTPStatus.CONFLICT],
        headers=[
            OpenApiParameter(
                HOPS,
                int,
                OpenApiParameter.HEADER,
                description=(
                    "Of the delivery that made you send this event, if one did: events that cause each"
                    f" other in a circle end after {intake.MAX_HOPS}."
                ),
            ),
            OpenApiParameter(
                REPLAYED,
                str,
                OpenApiParameter.HEADER,
                response=[HTTPStatus.ACCEPTED.value],
                description="`true`: the event existed already, nothing was sent.",
            ),
        ],
    )
    def post(self, request: Request) -> Response:
        asked = self.body(NewEventInput)
        taken = intake.take(self.actor, hops=_hops(request), **asked)
        headers = {REPLAYED: "true"} if taken.replayed else None
        return Response(ReceiptSerializer(taken.event).data, HTTPStatus.ACCEPTED, headers=headers)

    @operation(
        "listEvents",
        "events:read",
        "The organization's published events, oldest first, in an order that skips none",
        {HTTPStatus.OK: EventPageSerializer},
        query=EventQuery,
    )
    def get(self, request: Request) -> Response:
        asked = self.query(EventQuery)
        after = self._place(asked["after"]) if "after" in asked else START
        try:
            page = feed.read(self.actor.organization.pk, after, asked["limit"], asked["type"])
        except feed.NeverThere:
            raise _not_a_place() from None
        cursor = self._signer.sign(str(page.read_to))
        shown = EventPageSerializer({"items": page.events, "nextCursor": cursor})
        return Response(shown.data)

    @property
    def _signer(self) -> signing.Signer:
        return signing.Signer(sep=".", salt=f"api.cursor.events.{self.actor.organization.pk}")

    def _place(self, after: str) -> int:
        """The place behind a cursor or an event's id."""
        if event_id := parse_id(after):
            place = feed.place_of(self.actor.organization.pk, event_id)
            if place is None:
                raise _not_a_place()
            return place
        try:
            return int(self._signer.unsign(after))
        except signing.BadSignature:
            raise _not_a_place() from None

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, intake.EventRefused):
            wrong = isinstance(exc, intake.ReservedType)
            status = HTTPStatus.BAD_REQUEST if wrong else HTTPStatus.CONFLICT
            exc = Problem(status, exc.code, str(exc))
        return super().handle_exception(exc)


class EventView(ApiView):
    @operation(
        "getEvent",
        "events:read",
        "A published event",
        {HTTPStatus.OK: EventDetailSerializer},
        problems=[HTTPStatus.NOT_FOUND],
    )
    def get(self, request: Request, event_id: str) -> Response:
        event = Event.objects.get(
            pk=id_of(event_id), organization=self.actor.organization, published=True
        )
        return Response(EventDetailSerializer(event).data)


class EventTypesView(ApiView):
    @operation(
        "listEventTypes",
        "events:read",
        "The types of events that the console itself sends",
        {HTTPStatus.OK: EventTypesSerializer},
    )
    def get(self, request: Request) -> Response:
        return Response(EventTypesSerializer({"items": CATALOGUE}).data)


def _hops(request: Request) -> int:
    """How many events led to the one in the request: one more than to the delivery that caused it."""
    text = request.headers.get(HOPS)
    if text is None:
        return 0
    if not (text.isascii() and text.isdecimal() and len(text) <= 9):
        raise ValidationError({HOPS: ["Must be the number that a delivery came with."]})
    return int(text) + 1


def _not_a_place() -> ValidationError:
    return ValidationError({"after": ["Neither a nextCursor of this list nor one of its events."]})
