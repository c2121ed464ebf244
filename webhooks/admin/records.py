"""What was sent and what came of it: to look at, for good."""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from django.contrib import admin
from django.db.models import Q
from django.urls import reverse
from django.utils.html import format_html

from organizations.tenant_admin import (
    ON_A_PAGE,
    OrganizationFilter,
    TenantAdmin,
    capped,
)
from webhooks.models import Attempt, Delivery, Endpoint, Event


@admin.register(Event)
class EventAdmin(TenantAdmin[Event]):
    """What was to be told, as the bytes that were sent."""

    view_permission = "events:read"
    list_display = ("id", "type", "published", "organization", "created_at")
    list_select_related = ("organization",)
    list_filter = (OrganizationFilter,)
    searched_ids = ("pk",)
    search_help_text = "An event's id."
    fields = (
        "id",
        "organization",
        "type",
        "message_id",
        "shown_body",
        "published",
        "place",
        "hops",
        "idempotency_key",
        "created_at",
        "deliveries",
    )
    readonly_fields = fields

    @admin.display(description="body")
    def shown_body(self, event: Event) -> str:
        return as_block(bytes(event.body[: 4 * ON_A_PAGE]).decode("utf-8", "replace"))

    @admin.display(description="deliveries")
    def deliveries(self, event: Event) -> str:
        address = reverse("admin:webhooks_delivery_changelist")
        return format_html('<a href="{}?event={}">Deliveries</a>', address, event.pk)


@admin.register(Delivery)
class DeliveryAdmin(TenantAdmin[Delivery]):
    """The queue, to look at."""

    view_permission = "deliveries:read"
    list_display = (
        "id",
        "state",
        "attempts",
        "next_attempt_at",
        "policy",
        "endpoint",
        "failure_reason",
        "created_at",
    )
    list_select_related = ("endpoint",)
    list_filter = (OrganizationFilter,)
    lookups = ("event", "command_id")
    searched_ids = ("pk", "command_id")
    search_help_text = "A delivery's id, or that of its command."
    fields = (
        "id",
        "organization",
        "endpoint",
        "event",
        "command_id",
        "is_ping",
        "policy",
        "state",
        "attempts",
        "next_attempt_at",
        "lease_until",
        "failure_reason",
        "created_at",
        "settled_at",
        "attempts_list",
    )
    readonly_fields = fields

    @admin.display(description="all attempts")
    def attempts_list(self, delivery: Delivery) -> str:
        address = reverse("admin:webhooks_attempt_changelist")
        return format_html('<a href="{}?delivery={}">Attempts</a>', address, delivery.pk)


@admin.register(Attempt)
class AttemptAdmin(TenantAdmin[Attempt]):
    """Each POST with what came back, all of which the receiver chose."""

    organization_path = "endpoint__organization"
    view_permission = "deliveries:read"
    list_display = (
        "id",
        "number",
        "shown_verdict",
        "status_code",
        "error_kind",
        "lateness",
        "duration",
        "started_at",
        "endpoint",
        "delivery_id",
    )
    list_select_related = ("endpoint",)
    list_filter = (OrganizationFilter,)
    lookups = ("endpoint", "delivery")
    searched_ids = ("delivery_id",)
    search_help_text = "A delivery's id."
    fields = (
        "delivery",
        "endpoint",
        "number",
        "worker",
        "due_at",
        "claimed_at",
        "started_at",
        "finished_at",
        "lateness",
        "duration",
        "shown_verdict",
        "status_code",
        "error_kind",
        "shown_error",
        "shown_excerpt",
        "excerpt_truncated",
        "shown_retry_after",
        "shown_location",
        "next_attempt_at",
    )
    readonly_fields = fields

    def within(self, organizations: Collection[UUID]) -> Q:
        """By the ids of endpoints, which the planner knows the frequency of: for a quiet organization
        it takes their index, where a join would make it read everybody's attempts.
        """
        own = Endpoint.objects.filter(organization__in=organizations)
        return Q(endpoint__in=list(own.values_list("pk", flat=True)))

    @admin.display(description="verdict")
    def shown_verdict(self, attempt: Attempt) -> str:
        return attempt.verdict or "on the wire"

    @admin.display(description="lateness")
    def lateness(self, attempt: Attempt) -> str:
        return _milliseconds(attempt.lateness_ms)

    @admin.display(description="duration")
    def duration(self, attempt: Attempt) -> str:
        return _milliseconds(attempt.duration_ms)

    @admin.display(description="error")
    def shown_error(self, attempt: Attempt) -> str:
        return capped(attempt.error, ON_A_PAGE)

    @admin.display(description="response excerpt")
    def shown_excerpt(self, attempt: Attempt) -> str:
        return as_block(attempt.excerpt_text)

    @admin.display(description="Retry-After")
    def shown_retry_after(self, attempt: Attempt) -> str:
        return capped(attempt.retry_after)

    @admin.display(description="Location")
    def shown_location(self, attempt: Attempt) -> str:
        return capped(attempt.location, ON_A_PAGE)


def _milliseconds(value: int | None) -> str:
    return "—" if value is None else f"{value} ms"


def as_block(text: str) -> str:
    """Text of somebody else's, in its lines."""
    return format_html('<pre class="received">{}</pre>', capped(text, ON_A_PAGE))
