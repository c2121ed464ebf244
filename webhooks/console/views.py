"""Endpoints: how they do, and what was sent to them."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from organizations.console.access import ConsoleRequest, permitted
from organizations.console.responses import live, revision_of, unchanged
from webhooks import endpoints as service
from webhooks.console import rows
from webhooks.console.pings import last_ping_of
from webhooks.policies import POLICIES


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
    """One endpoint: its schedule, its health, its attempts."""
    row = rows.find(request.actor, pk)
    before = request.GET.get("before", "")
    page = rows.attempts_of(row.endpoint, int(before) if before.isdecimal() else None)
    ping = last_ping_of(row.endpoint)
    figures = service.figures_of([row.endpoint])[pk]
    revision = revision_of(_shown(row), page, ping, figures)
    if answer := unchanged(request, revision):
        return answer
    policy = row.endpoint.schedule
    context = {
        "row": row,
        "endpoint": row.endpoint,
        "page": page,
        "ping": ping,
        "figures": figures,
        "policy": policy,
        "schedule": rows.schedule_of(policy),
        "policies": POLICIES,
        "at_the_top": not before,
    }
    return live(request, "endpoints/detail.html", "endpoints/_live.html", context, revision)


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
        e.description,
        e.enabled,
        e.disabled_at,
        e.archived_at,
        row.health,
    )
