"""The list of commands, live."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, QueryDict
from django.urls import reverse
from django.views.decorators.http import require_safe

from commands.console import rows
from commands.console.forms import FilterForm
from commands.console.states import LOOKS
from commands.models import Dataset, Experiment
from organizations.console.access import ConsoleRequest, permitted
from organizations.console.responses import live, revision_of, unchanged


@permitted("commands:read")
@require_safe
def commands(request: ConsoleRequest) -> HttpResponse:
    """One page of commands: whole, its results after a change of filter, or what a poll asks for."""
    form = FilterForm(request.GET)
    form.is_valid()
    organization, before = request.actor.organization, form.cleaned_data.get("before")
    page = rows.page_of(organization, form.filters, before)
    seen = form.cleaned_data.get("seen") or _newest(request, form, page)
    newer = rows.newer_than(organization, form.filters, seen) if before and seen else 0
    revision = revision_of(page.revision, newer)
    if answer := unchanged(request, revision):
        return answer
    context = {
        "page": page,
        "form": form,
        "newer": newer,
        "poll_url": _address(request.GET, seen=seen if before else None),
        "older_url": _address(request.GET, before=page.older) if page.older else "",
        "newest_url": _address(request.GET, before=None) if before else "",
        "at_the_top": not before,
        "looks": LOOKS,
    }
    polled = request.htmx.target == "commands-live"
    fragment = "commands/_rows.html" if polled else "commands/_results.html"
    if not request.htmx:
        context |= _choices(request)
    return live(request, "commands/list.html", fragment, context, revision)


def _newest(request: ConsoleRequest, form: FilterForm, page: rows.Page) -> Any:
    if not form.cleaned_data.get("before"):
        return page.newest
    return rows.page_of(request.actor.organization, form.filters, None).newest


def _choices(request: ConsoleRequest) -> dict[str, Any]:
    """What the filters offer."""
    organization = request.actor.organization
    return {
        "experiments": Experiment.objects.filter(organization=organization).order_by("name"),
        "datasets": Dataset.objects.filter(organization=organization)
        .select_related("experiment")
        .order_by("experiment__name", "name"),
    }


def _address(query: QueryDict, **changes: Any) -> str:
    """This list with these parameters changed, or left out where None."""
    changed = query.copy()
    changed.pop("seen", None)
    for name, value in changes.items():
        changed.pop(name, None)
        if value is not None:
            changed[name] = str(value)
    for name in [name for name, value in changed.items() if not value]:
        del changed[name]
    return f"{reverse('commands')}?{changed.urlencode()}".rstrip("?")
