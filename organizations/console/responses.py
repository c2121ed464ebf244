"""How a view answers: a whole page to a browser, a fragment to htmx, from one address."""

from __future__ import annotations

import hashlib
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django_htmx.http import trigger_client_event

from organizations.console.access import ConsoleRequest

REVISION_HEADER = "X-Revision"


def page_or_sheet(
    request: ConsoleRequest, name: str, context: dict[str, Any], status: int = 200
) -> HttpResponse:
    """An act's confirmation: ``_name.html`` inside the open page, or a page of its own."""
    if request.htmx:
        return render(request, name, context, status=status)
    return render(request, "sheet_page.html", {**context, "sheet": name}, status=status)


def done(
    request: ConsoleRequest, page: str, message: str, open_sheet: str | None = None
) -> HttpResponse:
    """An act was done. With htmx the open page stays: it closes its sheet and looks for news.

    ``open_sheet`` is the address of a confirmation to go on with.
    """
    if request.htmx:
        event = {"message": message, "open": open_sheet or ""}
        return trigger_client_event(HttpResponse(status=204), "acted", event)
    messages.success(request, message)
    return redirect(open_sheet or page)


def revision_of(*facts: object) -> str:
    """A short digest of what a page shows."""
    return hashlib.blake2s(repr(facts).encode(), digest_size=12).hexdigest()


def is_poll(request: ConsoleRequest) -> bool:
    """Whether only what changed is asked for: most of these learn that nothing did."""
    return bool(request.htmx and REVISION_HEADER in request.headers)


def unchanged(request: ConsoleRequest, revision: str) -> HttpResponse | None:
    """204 for a poll whose page shows this revision already."""
    if request.htmx and request.headers.get(REVISION_HEADER) == revision:
        return HttpResponse(status=204)
    return None


def live(
    request: ConsoleRequest, page: str, fragment: str, context: dict[str, Any], revision: str
) -> HttpResponse:
    """A page, or only its live part, with the revision to ask with next time."""
    template = fragment if request.htmx else page
    response = render(request, template, {**context, "revision": revision})
    response.headers[REVISION_HEADER] = revision
    return response
