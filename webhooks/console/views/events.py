"""Published events: the newest, and one with what became of it."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_safe

from organizations.console import addresses
from organizations.console.access import ConsoleRequest, permitted
from organizations.console.responses import live, revision_of, unchanged
from webhooks.console import as_sent, deliveries
from webhooks.console import events as shown
from webhooks.console.events import EventFilterForm


@permitted("events:read")
@require_safe
def events(request: ConsoleRequest) -> HttpResponse:
    """One page of events: whole, its results after a change of filter, or what a poll asks for."""
    form = EventFilterForm(request.GET)
    form.is_valid()
    before = addresses.number(request.GET.get("before", ""))
    page = shown.page_of(request.actor.organization, form.condition, before)
    rows = shown.rows_of(page.rows)
    revision = revision_of([shown.facts_of(row) for row in rows], bool(page.older))
    if answer := unchanged(request, revision):
        return answer
    context = {
        "page": page,
        "rows": rows,
        "form": form,
        **addresses.around(request.path, request.GET, page),
        "poll_url": request.get_full_path(),
        "publish_url": request.build_absolute_uri("/api/events"),
    }
    polled = request.htmx.target == "events-live"
    fragment = "events/_rows.html" if polled else "events/_results.html"
    return live(request, "events/list.html", fragment, context, revision)


@permitted("events:read")
@require_safe
def event(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """An event: its body, and its delivery to each endpoint that was told."""
    found = shown.published(request.actor.organization).filter(pk=pk).first()
    if found is None:
        raise Http404
    rows = shown.deliveries_of(found)
    shares = shown.shares_of([pk])[pk]
    revision = revision_of([deliveries.facts_of(row.delivery) for row in rows], shares)
    if answer := unchanged(request, revision):
        return answer
    body, whole = as_sent.shown(found.body)
    context = {
        "event": found,
        "rows": rows,
        "shares": shares,
        "count": sum(share.count for share in shares),
        "size": len(found.body),
        "body": body,
        "pretty": as_sent.pretty(body),
        "whole": whole,
    }
    return live(request, "events/detail.html", "events/_live.html", context, revision)
