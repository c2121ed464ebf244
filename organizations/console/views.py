"""Pages that belong to no part of the console: choosing an organization, and a stale form."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from organizations.console.access import ConsoleRequest, choose, permitted


@require_POST
@permitted("commands:read")
def choose_organization(request: ConsoleRequest) -> HttpResponse:
    """Work in another organization that the user belongs to."""
    try:
        wanted = UUID(request.POST.get("organization", ""))
    except ValueError:
        raise Http404 from None
    if not choose(request, wanted):
        raise Http404
    name = next(m.organization.name for m in request.memberships if m.organization_id == wanted)
    messages.success(request, f"You now work in {name}.")
    return redirect("home")


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form from before the last login, or from elsewhere: nothing was done."""
    template = "_csrf_failure.html" if request.headers.get("HX-Request") else "403_csrf.html"
    return render(request, template, status=403)
