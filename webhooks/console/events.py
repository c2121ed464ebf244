"""Published events as pages show them, with how far each was told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django import forms
from django.db.models import Count, Q, QuerySet

from organizations import paging
from organizations.console.fields import ConsoleForm
from organizations.console.looks import Look
from organizations.models import Organization
from organizations.paging import Listing, Page
from webhooks.console import deliveries
from webhooks.console.deliveries import LOOKS, DeliveryRow
from webhooks.models import Delivery, Event
from webhooks.rules.event_types import MAX_LENGTH, WILDCARD


@dataclass(frozen=True)
class Share:
    """How many deliveries of an event stand so."""

    look: Look
    count: int


@dataclass(frozen=True)
class EventRow:
    """An event as a list shows it; without shares nobody subscribes to it."""

    event: Event
    shares: Sequence[Share]


class EventFilterForm(ConsoleForm):
    """What narrows the list, as it stands in its address."""

    type = forms.CharField(required=False, max_length=MAX_LENGTH)

    @property
    def condition(self) -> Q | None:
        """The start of a type; a wildcard may stand after it."""
        return paging.only(
            {"type": lambda start: Q(type__startswith=start.removesuffix(WILDCARD))},
            self.cleaned_data,
        )


def published(organization: Organization) -> QuerySet[Event]:
    """The organization's published events, without their bodies."""
    return Event.objects.filter(organization=organization, published=True).defer("body")


def page_of(organization: Organization, condition: Q | None, before: int | None) -> Page[Event]:
    """The organization's newest events that match, or those before that place of the feed."""
    return Listing(published(organization), "place", "created_at").page(before, condition)


def rows_of(events: Sequence[Event]) -> list[EventRow]:
    """The events with their deliveries counted by state, in one query."""
    shares = shares_of(event.pk for event in events)
    return [EventRow(event, shares.get(event.pk, [])) for event in events]


def shares_of(event_ids: Iterable[UUID]) -> Mapping[UUID, list[Share]]:
    """By event; in the order in which states are shown everywhere."""
    counted = (
        Delivery.objects.filter(event_id__in=list(event_ids))
        .values_list("event_id", "state")
        .annotate(count=Count("pk"))
    )
    counts = {(event_id, state): count for event_id, state, count in counted}
    found: defaultdict[UUID, list[Share]] = defaultdict(list)
    for state, look in LOOKS.items():
        for (event_id, of_state), count in counts.items():
            if of_state == state:
                found[event_id].append(Share(look, count))
    return found


def facts_of(row: EventRow) -> tuple[Any, ...]:
    """Whatever of an event can change on a page."""
    return (row.event.pk, [(share.look.word, share.count) for share in row.shares])


def deliveries_of(event: Event) -> list[DeliveryRow]:
    """Its deliveries by endpoint, as many as a page has; the list of deliveries has the others."""
    found = deliveries.with_all(Delivery.objects.filter(event=event))
    return [DeliveryRow(one) for one in found.order_by("endpoint__name", "pk")[: paging.PAGE_SIZE]]
