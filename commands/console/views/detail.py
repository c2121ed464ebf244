"""One command's page, live."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpResponse
from django.views.decorators.http import require_safe

from commands.console import page
from organizations.console.access import ConsoleRequest, permitted
from organizations.console.responses import live, unchanged
from webhooks.console import as_sent


@permitted("commands:read")
@require_safe
def command(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """A command: where it stands and why, its attempts, its timeline, what was sent."""
    sight = page.sight_of(request.actor, pk)
    if answer := unchanged(request, sight.revision):
        return answer
    shown = page.drawn(sight, request.now)
    delivery = shown.command.delivery
    context = {
        "page": shown,
        "command": shown.command,
        "sent": as_sent.request_of(delivery) if delivery else None,
        "parameters": as_sent.pretty(shown.command.parameters),
    }
    return live(request, "commands/detail.html", "commands/_live.html", context, sight.revision)
