"""Endpoints: how they do, and what was sent to them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from organizations.console import addresses
from organizations.console.access import ConsoleRequest, permitted
from organizations.console.responses import is_poll, live, revision_of, unchanged
from webhooks import endpoints as service
from webhooks.console import attempts, rows, subscriptions
from webhooks.console.attempts import OUTCOMES, AttemptFilterForm
from webhooks.console.pings import last_ping_of


@permitted("endpoints:read")
@require_safe
def endpoints(request: ConsoleRequest) -> HttpResponse:
    """Every endpoint with its health."""
    found = rows.endpoint_rows(request.actor.organization)
    revision = revision_of([_shown(row) for row in found])
    if answer := unchanged(request, revision):
        return answer
    return live(request, "endpoints/list.html", "endpoints/_list.html", {"rows": found}, revision)


@permitted("endpoints:read")
@require_safe
def endpoint(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """One endpoint: its schedule, its health, what it is told of, its attempts."""
    row = rows.find(request.actor, pk)
    form = AttemptFilterForm(request.GET)
    form.is_valid()
    before = addresses.number(request.GET.get("before", ""))
    ping = last_ping_of(row.endpoint)
    figures = service.figures_of([row.endpoint])[pk]

    def revision_with(facts: list[tuple[Any, ...]], goes_on: bool) -> str:
        return revision_of(_shown(row), facts, goes_on, ping, figures)

    if is_poll(request):
        sight = attempts.sight_of(row.endpoint, before, form.condition)
        seen = revision_with([tuple(seen) for seen in sight.rows], bool(sight.older))
        if answer := unchanged(request, seen):
            return answer
    page = attempts.page_of(row.endpoint, before, form.condition)
    revision = revision_with([attempts.facts_of(a) for a in page.rows], bool(page.older))
    context = {
        **_about(row),
        "ping": ping,
        "figures": figures,
        "page": page,
        "form": form,
        "outcomes": OUTCOMES,
        **addresses.around(request.path, request.GET, page),
    }
    polled = request.htmx.target == "endpoint-live"
    fragment = "endpoints/_live.html" if polled else "endpoints/_results.html"
    return live(request, "endpoints/detail.html", fragment, context, revision)


def _about(row: rows.EndpointRow) -> dict[str, Any]:
    policy = row.endpoint.schedule
    return {
        "row": row,
        "endpoint": row.endpoint,
        "policy": policy,
        "schedule": policy.planned,
        "subscriptions": subscriptions.told(row.endpoint.event_types),
    }


def _shown(row: rows.EndpointRow) -> tuple[object, ...]:
    """Whatever of an endpoint can change on a page."""
    e = row.endpoint
    return (
        e.pk,
        e.name,
        e.url,
        e.policy,
        e.is_default,
        e.receives_commands,
        e.event_types,
        e.header_names,
        e.description,
        e.enabled,
        e.disabled_at,
        e.archived_at,
        row.health,
    )
