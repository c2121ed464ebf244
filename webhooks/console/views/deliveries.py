"""Deliveries: the newest, and one that is no command's."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from organizations.console import addresses
from organizations.console.access import ConsoleRequest, permitted
from organizations.console.responses import is_poll, live, revision_of, unchanged
from organizations.console.selects import Option, Select
from webhooks.console import as_sent, delivery_page
from webhooks.console import deliveries as shown
from webhooks.console.deliveries import LOOKS, DeliveryFilterForm, DeliveryRow
from webhooks.console.rows import endpoint_options
from webhooks.models import Delivery
from webhooks.policies import POLICIES


@permitted("deliveries:read")
@require_safe
def deliveries(request: ConsoleRequest) -> HttpResponse:
    """One page of deliveries: whole, its results after a change of filter, or what a poll asks for."""
    form = DeliveryFilterForm(request.GET)
    form.is_valid()
    before = addresses.identifier(request.GET.get("before", ""))
    organization = request.actor.organization
    if is_poll(request):
        sight = shown.sight_of(organization, form, before)
        seen = revision_of([tuple(seen) for seen in sight.rows], bool(sight.older))
        if answer := unchanged(request, seen):
            return answer
    page = shown.page_of(organization, form, before)
    revision = revision_of([shown.facts_of(d) for d in page.rows], bool(page.older))
    context = {
        "page": page,
        "rows": [DeliveryRow(delivery) for delivery in page.rows],
        "form": form,
        "looks": LOOKS,
        **addresses.around(request.path, request.GET, page),
        "poll_url": request.get_full_path(),
    }
    if not request.htmx:
        context["selects"] = _selects(request, form)
    polled = request.htmx.target == "deliveries-live"
    fragment = "deliveries/_rows.html" if polled else "deliveries/_results.html"
    return live(request, "deliveries/list.html", fragment, context, revision)


def _selects(request: ConsoleRequest, form: DeliveryFilterForm) -> list[Select]:
    """What the filters offer, and what of it is chosen."""
    offered = (
        Select(
            "carries",
            "What it carries",
            "Commands, events, pings",
            [Option(name, name.capitalize()) for name in shown.CARRIED],
        ),
        Select("policy", "Policy", "Every policy", [Option(name, name) for name in POLICIES]),
        Select(
            "endpoint",
            "Endpoint",
            "Every endpoint",
            endpoint_options(request.actor.organization),
        ),
    )
    return [select.choosing(str(form.cleaned_data.get(select.name) or "")) for select in offered]


@permitted("deliveries:read")
@require_safe
def delivery(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """A delivery: where it stands and why, its attempts, what was sent. A command's has its own page."""
    mine = shown.with_all(Delivery.objects.filter(organization=request.actor.organization))
    found = mine.filter(pk=pk).first()
    if found is None:
        raise Http404
    if found.command_id:
        return redirect("command", found.command_id)
    page = delivery_page.page_of(found, request.now)
    if answer := unchanged(request, page.revision):
        return answer
    context = {"page": page, "delivery": found, "sent": as_sent.request_of(found)}
    return live(request, "deliveries/detail.html", "deliveries/_live.html", context, page.revision)
