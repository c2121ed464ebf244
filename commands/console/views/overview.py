"""The overview: what needs a person now, then how the work goes."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from organizations.console.access import ConsoleRequest, permitted


@permitted("commands:read")
@require_safe
def overview(request: ConsoleRequest) -> HttpResponse:
    """What needs a person now, first."""
    return render(request, "overview/page.html")
