"""What every template of the console knows beside its view's own context."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from organizations.console import zones


def console(request: HttpRequest) -> dict[str, Any]:
    """The actor and the organizations to choose from; nothing before a view let somebody in."""
    return {
        "actor": getattr(request, "actor", None),
        "memberships": getattr(request, "memberships", ()),
        "server_now": getattr(request, "now", None),
        "zone": zones.current_name(),
    }
