"""Deliveries as pages show them: how each stands, what it waits for, and an organization's newest."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django import forms
from django.db import connection
from django.db.models import Q, QuerySet

from organizations import paging
from organizations.console.fields import ConsoleForm
from organizations.console.looks import Look
from organizations.models import Organization
from organizations.paging import Listing, Page
from webhooks.models import Delivery
from webhooks.policies import POLICIES

State = Delivery.State


LOOKS: Final = {
    State.PENDING: Look("Pending", "waiting", "queued", "On its way to the endpoint"),
    State.DELIVERED: Look("Delivered", "good", "acked", "The endpoint answered 2xx"),
    State.FAILED: Look("Failed", "bad", "failed", "Over without a 2xx"),
    State.CANCELLED: Look("Cancelled", "withdrawn", "retracted", "Withdrawn on the way"),
}
FAILURES: Final = {
    "attempts_exhausted": "attempts exhausted",
    "refused": "refused by the receiver",
    "endpoint_disabled": "endpoint disabled",
}
COMMANDS, EVENTS, PINGS = "commands", "events", "pings"
CARRIED: Final = {
    COMMANDS: Q(command_id__isnull=False),
    EVENTS: Q(command_id__isnull=True, is_ping=False),
    PINGS: Q(is_ping=True),
}
FACTS: Final = ("state", "attempts", "next_attempt_at", "lease_until", "endpoint__name")
# So many pending deliveries are found wherever they are; of more, the newest are what is looked for.
PENDING_AT_MOST = 500

# Straight from the partial indexes of what waits and of what is in flight, endpoint by endpoint.
PENDING = """
SELECT pending.id
  FROM webhooks_endpoint e
 CROSS JOIN LATERAL (
    (SELECT d.id FROM webhooks_delivery d
      WHERE d.endpoint_id = e.id AND d.next_attempt_at IS NOT NULL LIMIT %(count)s)
    UNION ALL
    (SELECT d.id FROM webhooks_delivery d
      WHERE d.endpoint_id = e.id AND d.lease_until IS NOT NULL LIMIT %(count)s)) pending
 WHERE e.organization_id = %(organization)s LIMIT %(count)s
"""


@dataclass(frozen=True)
class Ahead:
    """What is waited for: something with a time, which counts down, or only words."""

    words: str
    until: datetime | None = None
    past: str = ""


@dataclass(frozen=True)
class DeliveryRow:
    """A delivery as a list shows it."""

    delivery: Delivery

    @property
    def look(self) -> Look:
        return LOOKS[State(self.delivery.state)]

    @property
    def ahead(self) -> Ahead:
        return ahead_of(self.delivery)


class DeliveryFilterForm(ConsoleForm):
    """What narrows the list, as it stands in its address."""

    state = forms.ChoiceField(required=False, choices=State.choices)
    policy = forms.ChoiceField(required=False, choices=[(name, name) for name in POLICIES])
    carries = forms.ChoiceField(required=False, choices=[(name, name) for name in CARRIED])
    endpoint = forms.UUIDField(required=False)
    event = forms.UUIDField(required=False)

    @property
    def condition(self) -> Q | None:
        """Of the filters that were understood; an event is found by itself."""
        return paging.only(
            {
                "state": lambda state: Q(state=state),
                "policy": lambda policy: Q(policy=policy),
                "carries": lambda what: CARRIED[what],
                "endpoint": lambda endpoint: Q(endpoint_id=endpoint),
            },
            self.cleaned_data,
        )

    @property
    def narrows(self) -> bool:
        return any(self.cleaned_data.values())


def with_all(deliveries: QuerySet[Delivery]) -> QuerySet[Delivery]:
    """With all that a row shows, and without what is large or secret."""
    return deliveries.select_related("endpoint", "event").defer(
        "event__body", "endpoint__headers_ciphertext"
    )


def page_of(
    organization: Organization, form: DeliveryFilterForm, before: UUID | None
) -> Page[Delivery]:
    """The organization's newest deliveries that match, or those older than ``before``."""
    listing, condition = _listing(organization, form, before)
    return listing.page(before, condition)


def sight_of(
    organization: Organization, form: DeliveryFilterForm, before: UUID | None
) -> Page[Any]:
    """Whatever of that page can change."""
    listing, condition = _listing(organization, form, before)
    return listing.sight(before, condition, *FACTS)


def _listing(
    organization: Organization, form: DeliveryFilterForm, before: UUID | None
) -> tuple[Listing[Delivery], Q | None]:
    mine = with_all(Delivery.objects.filter(organization=organization))
    condition = form.condition
    if event := form.cleaned_data.get("event"):
        mine = mine.filter(event_id=event)
    elif form.cleaned_data.get("state") == State.PENDING:
        pending = _pending(organization)
        if len(pending) <= PENDING_AT_MOST:
            mine = mine.filter(pk__in=_newest_of(pending, before, condition))
            condition = None
    return Listing(mine, "pk", "created_at"), condition


def _newest_of(pending: list[UUID], before: UUID | None, condition: Q | None) -> list[UUID]:
    """As many of these as a page has, and one; nothing is joined before they are so few."""
    found = Delivery.objects.filter(condition or Q(), pk__in=pending)
    if before is not None:
        found = found.filter(pk__lt=before)
    newest = found.order_by("-pk").values_list("pk", flat=True)
    return list(newest[: paging.PAGE_SIZE + 1])


def _pending(organization: Organization) -> list[UUID]:
    """What waits or is in flight; one more than at most says that there are others."""
    parameters: dict[str, Any] = {"organization": organization.pk, "count": PENDING_AT_MOST + 1}
    with connection.cursor() as cursor:
        cursor.execute(PENDING, parameters)
        return [pk for (pk,) in cursor.fetchall()]


def facts_of(delivery: Delivery) -> tuple[Any, ...]:
    """Whatever of a delivery can change on a page: ``FACTS``, read from the delivery."""
    d = delivery
    return (d.pk, d.state, d.attempts, d.next_attempt_at, d.lease_until, d.endpoint.name)


def ahead_of(delivery: Delivery) -> Ahead:
    """What comes next for a delivery, or how it ended."""
    if delivery.next_attempt_at:
        return Ahead(f"attempt {delivery.attempts + 1}", delivery.next_attempt_at, "due now")
    if delivery.lease_until:
        return Ahead("on the wire")
    return Ahead(FAILURES.get(delivery.failure_reason, delivery.failure_reason))
