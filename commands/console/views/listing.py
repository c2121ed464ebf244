"""The list of commands, live, and as a file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe
from django_htmx.http import reswap, retarget

from commands.console import export, rows
from commands.console.filters import WITHIN, FilterForm, address, drops, selects
from commands.console.states import CHOICES
from commands.models import Dataset
from commands.queries import Filters
from organizations import audit
from organizations.console import zones
from organizations.console.access import ConsoleRequest, permitted
from organizations.console.responses import live, revision_of, unchanged
from organizations.models import Organization
from organizations.patience import TookTooLong


@permitted("commands:read")
@require_safe
def commands(request: ConsoleRequest) -> HttpResponse:
    """One page of commands: whole, its results after a change of filter, or what a poll asks for."""
    form = FilterForm(request.GET)
    form.is_valid()
    try:
        return _listed(request, form)
    except TookTooLong:
        return _too_broad(request, form)


@permitted("commands:read")
@require_http_methods(["GET", "HEAD", "POST"])
def export_commands(request: ConsoleRequest) -> HttpResponseBase:
    """Everything that the filters in the address leave, as a file. Who comes back from signing in, where
    an expired session had sent him, is led to the list.
    """
    if request.method != "POST":
        return redirect(address(request.GET))
    form = FilterForm(request.GET)
    form.is_valid()
    organization = request.actor.organization
    pieces = export.lines(organization, form.filters(request.now))
    try:
        first = next(pieces)
    except TookTooLong:
        return _too_broad(request, form)
    except export.Busy:
        context = {"list_url": address(request.GET)}
        return render(request, "commands/busy.html", context, status=HTTPStatus.TOO_MANY_REQUESTS)
    asked = {name: request.GET[name] for name in form.narrowing}
    audit.record(request.actor, "commands.export", organization, after={"filters": asked})
    name = export.filename(request.now.astimezone(UTC))
    return StreamingHttpResponse(
        _whole(first, pieces),
        content_type="text/csv; charset=utf-8; header=present",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _whole(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _listed(request: ConsoleRequest, form: FilterForm) -> HttpResponse:
    organization, filters = request.actor.organization, form.filters(request.now)
    before = form.cleaned_data.get("before")
    page = rows.page_of(organization, filters, before)
    top = rows.page_of(organization, filters, None) if before and not _seen(form) else page
    seen = _seen(form) or top.newest
    newer = rows.newer_than(organization, filters, seen) if before and seen else 0
    dataset = _dataset(organization, filters)
    armed = (dataset.name, dataset.armed_at) if dataset else None
    revision = revision_of(page.revision, newer, armed, zones.current_name())
    if answer := unchanged(request, revision):
        return answer
    context = {
        "page": page,
        "dataset": dataset,
        "newer": newer,
        "poll_url": address(request.GET, seen=seen if before else None),
        "older_url": address(request.GET, before=page.older) if page.older else "",
        "newest_url": address(request.GET, before=None) if before else "",
        "at_the_top": not before,
    }
    polled = request.htmx.target == "commands-live"
    if not polled or not page.rows:
        context |= _filters(request, form)
    fragment = "commands/_rows.html" if polled else "commands/_results.html"
    return live(request, "commands/list.html", fragment, context, revision)


def _dataset(organization: Organization, filters: Filters) -> Dataset | None:
    """The one that the list is narrowed to: whether it is armed stands above its commands."""
    if not filters.dataset_id:
        return None
    datasets = Dataset.objects.filter(organization=organization).select_related("armed_by")
    return datasets.filter(pk=filters.dataset_id).first()


def _seen(form: FilterForm) -> UUID | None:
    seen: UUID | None = form.cleaned_data.get("seen")
    return seen


def _too_broad(request: ConsoleRequest, form: FilterForm) -> HttpResponse:
    """What is said instead of rows, and not asked for again."""
    context = {"too_broad": _shorter(request), **_filters(request, form)}
    answer = live(request, "commands/list.html", "commands/_results.html", context, "")
    return retarget(reswap(answer, "innerHTML"), "#results")


def _shorter(request: ConsoleRequest) -> list[tuple[str, str]]:
    """The same list within a shorter time: words and addresses."""
    return [
        (label, address(request.GET, within=name, since=None, until=None, before=None))
        for name, (label, _) in WITHIN.items()
    ]


def _filters(request: ConsoleRequest, form: FilterForm) -> dict[str, Any]:
    """What the filters offer, and which are in force."""
    offered = selects(request.actor.organization, form)
    in_force = drops(form, request.GET, offered)
    return {
        "form": form,
        "selects": offered,
        "drops": in_force,
        "tucked_away": any(drop.tucked_away for drop in in_force),
        "looks": CHOICES,
        "export_url": address(request.GET, "export_commands", before=None),
    }
