"""Endpoints: of all that is here they alone are more than a record, and of them only what redirects
nothing can be edited. Where webhooks go is changed where the new address is tried at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html

from organizations.actors import Actor, NotPermitted
from organizations.admin_actions import Question, confirm
from organizations.tenant_admin import (
    FixedOrderChangeList,
    OrganizationFilter,
    TenantAdmin,
    acting_in,
    capped,
)
from webhooks import endpoints
from webhooks.models import Endpoint, EndpointSecret
from webhooks.rules.event_types import is_subscription
from webhooks.rules.health import Health

# Where a list keeps the health of its rows, read in one query for all of them.
HEALTH: Final = "_health"

DISABLE = Question[Endpoint](
    title="Disable endpoints",
    consequences=(
        "No new attempt starts. Deliveries that wait end failed, and their commands with them.",
        "Attempts on the wire cannot be recalled: they finish and are recorded.",
    ),
    button="Disable",
    describe=lambda endpoint: f"{endpoint.name}, {endpoint.url}",
    asks_reason=True,
)
ENABLE = Question[Endpoint](
    title="Enable endpoints",
    consequences=(
        "New deliveries are attempted again, and counters of failures start from zero.",
        "Nothing that ended meanwhile is sent again.",
    ),
    button="Enable",
    describe=lambda endpoint: f"{endpoint.name}, {endpoint.url}: {endpoint.disabled_reason}",
    asks_password=True,
)

ARCHIVE = Question[Endpoint](
    title="Archive endpoints",
    consequences=(
        "They are not used again, and nobody can enable or edit them. Their history stays.",
        "Deliveries that wait end failed, and their commands with them.",
        "A default leaves no other in its place: choose one, or commands have no endpoint.",
    ),
    button="Archive",
    describe=lambda endpoint: f"{endpoint.name}, {endpoint.url}",
)


class EndpointForm(forms.ModelForm):  # type: ignore[type-arg]
    """What an edit may touch here."""

    # With none in flight at most, its deliveries would wait for ever.
    max_in_flight = forms.IntegerField(
        min_value=1,
        max_value=1000,
        required=False,
        help_text="Attempts in flight at once at most; empty means the console's setting.",
    )

    class Meta:
        model = Endpoint
        fields = ("name", "description", "event_types", "max_in_flight")

    def clean_event_types(self) -> list[str]:
        wanted: list[str] = self.cleaned_data["event_types"]
        for one in wanted:
            if not is_subscription(one):
                raise forms.ValidationError(
                    "Write a type as command.failed, a prefix of them as command.*, all as *."
                )
        return wanted


class EndpointChangeList(FixedOrderChangeList):
    """A page of endpoints with the health of each."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        shown: list[Endpoint] = list(self.result_list)
        health = endpoints.health_of(shown)
        for endpoint in shown:
            setattr(endpoint, HEALTH, health[endpoint.pk])
        self.result_list = shown


@admin.register(Endpoint)
class EndpointAdmin(TenantAdmin[Endpoint]):
    """Endpoints are made in the console, where their signing secret is shown once."""

    view_permission = "endpoints:read"
    edit_permission = "endpoints:write"
    form = EndpointForm
    list_display = (
        "shown_name",
        "enabled",
        "policy",
        "last_outcomes",
        "receives_commands",
        "organization",
        "shown_url",
        "on_console",
    )
    list_select_related = ("organization",)
    list_filter = (
        OrganizationFilter,
        "enabled",
        "policy",
        ("archived_at", admin.EmptyFieldListFilter),
    )
    search_fields = ("name", "url")
    fieldsets = (
        (None, {"fields": ("id", "organization", "name", "description")}),
        ("Where and how", {"fields": ("url", "policy", "receives_commands", "is_default")}),
        ("What and how much", {"fields": ("event_types", "header_names", "max_in_flight")}),
        (
            "Health",
            {"fields": ("enabled", "disabled_at", "disabled_reason", "health", "health_since")},
        ),
        ("More", {"fields": ("created_at", "archived_at", "attempts_list")}),
    )
    readonly_fields = (
        "id",
        "organization",
        "url",
        "policy",
        "receives_commands",
        "is_default",
        "header_names",
        "enabled",
        "disabled_at",
        "disabled_reason",
        "health",
        "health_since",
        "created_at",
        "archived_at",
        "attempts_list",
    )
    actions = ("disable", "enable", "archive")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Endpoint | None = None) -> bool:
        return not (obj and obj.archived_at) and super().has_change_permission(request, obj)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return EndpointChangeList

    def save_model(self, request: HttpRequest, obj: Endpoint, form: Any, change: bool) -> None:
        if form.changed_data:
            changes = {name: form.cleaned_data[name] for name in form.changed_data}
            endpoints.edit(acting_in(request, obj.organization), obj.pk, changes)

    def view_on_site(self, obj: Endpoint) -> str:
        return f"/endpoints/{obj.pk}/"

    # -- what it shows --

    @admin.display(description="name")
    def shown_name(self, endpoint: Endpoint) -> str:
        return capped(endpoint.name)

    @admin.display(description="URL")
    def shown_url(self, endpoint: Endpoint) -> str:
        return capped(endpoint.url)

    @admin.display(description="last outcomes")
    def last_outcomes(self, endpoint: Endpoint) -> str:
        health: Health = getattr(endpoint, HEALTH)
        failed = health.recent_outcomes.count("failed")
        if not health.recent_outcomes:
            return "none yet"
        return f"{failed} of {len(health.recent_outcomes)} failed"

    @admin.display(description="health")
    def health(self, endpoint: Endpoint) -> str:
        health = endpoints.health_of([endpoint])[endpoint.pk]
        outcomes = ", ".join(health.recent_outcomes) or "none yet"
        return (
            f"Outcomes, newest first: {outcomes}. Failures in a row: {health.consecutive_failures};"
            f" disabled after {health.failures_until_disabled} more."
        )

    @admin.display(description="attempts")
    def attempts_list(self, endpoint: Endpoint) -> str:
        address = reverse("admin:webhooks_attempt_changelist")
        return format_html('<a href="{}?endpoint={}">Attempts</a>', address, endpoint.pk)

    @admin.display(description="console")
    def on_console(self, endpoint: Endpoint) -> str:
        return format_html('<a href="{}">View on console</a>', self.view_on_site(endpoint))

    # -- what owners do --

    def has_switch_permission(self, request: HttpRequest) -> bool:
        return self.may(request, "endpoints:enable")

    @admin.action(description="Disable selected endpoints", permissions=["switch"])
    def disable(self, request: HttpRequest, queryset: QuerySet[Endpoint]) -> HttpResponse | None:
        answer = confirm(self, request, DISABLE)
        if isinstance(answer, HttpResponse):
            return answer
        for endpoint in answer.rows:
            if self._was(request, endpoint, enabled=False):
                continue
            act = functools.partial(endpoints.disable, reason=answer.reason)
            self._do(request, endpoint, act, "disabled")
        return None

    @admin.action(description="Enable selected endpoints", permissions=["switch"])
    def enable(self, request: HttpRequest, queryset: QuerySet[Endpoint]) -> HttpResponse | None:
        answer = confirm(self, request, ENABLE)
        if isinstance(answer, HttpResponse):
            return answer
        for endpoint in answer.rows:
            if not self._was(request, endpoint, enabled=True):
                self._do(request, endpoint, endpoints.enable, "enabled")
        return None

    @admin.action(description="Archive selected endpoints", permissions=["switch"])
    def archive(self, request: HttpRequest, queryset: QuerySet[Endpoint]) -> HttpResponse | None:
        answer = confirm(self, request, ARCHIVE)
        if isinstance(answer, HttpResponse):
            return answer
        for endpoint in answer.rows:
            self._do(request, endpoint, endpoints.archive, "archived")
        return None

    def _was(self, request: HttpRequest, endpoint: Endpoint, *, enabled: bool) -> bool:
        """Say so when there is nothing to do."""
        if endpoint.enabled == enabled:
            word = "enabled" if enabled else "disabled"
            self.message_user(request, f"{capped(endpoint.name)} was {word} before.")
        return endpoint.enabled == enabled

    def _do(
        self,
        request: HttpRequest,
        endpoint: Endpoint,
        act: Callable[[Actor, UUID], Endpoint],
        done: str,
    ) -> None:
        """Act on one endpoint and say what came of it."""
        name = capped(endpoint.name)
        try:
            act(acting_in(request, endpoint.organization), endpoint.pk)
        except NotPermitted:
            refusal = f"{name}: only an owner of its organization may do that."
            self.message_user(request, refusal, messages.ERROR)
        except endpoints.Refused as refused:
            self.message_user(request, f"{name}: {refused}", messages.ERROR)
        else:
            self.message_user(request, f"{name} is {done}.", messages.SUCCESS)


@admin.register(EndpointSecret)
class EndpointSecretAdmin(TenantAdmin[EndpointSecret]):
    """That there are secrets, and since when; never what they are."""

    organization_path = "endpoint__organization"
    view_permission = "endpoints:read"
    list_display = ("id", "endpoint", "created_at", "expires_at")
    list_select_related = ("endpoint",)
    fields = ("endpoint", "created_at", "expires_at")
