"""The overview: what needs a person now, then how the work goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.humanize.templatetags.humanize import intcomma
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from commands import overview as service
from commands.console.attention import groups_of
from commands.console.states import LOOKS
from commands.overview import COUNTED_TO, SETTLED, UNDER_WAY
from commands.queries import of_organization
from commands.rules.states import State
from organizations.console.access import ConsoleRequest, permitted
from organizations.console.looks import Look
from organizations.console.responses import live, revision_of, unchanged
from webhooks.console.pace_chart import chart_of
from webhooks.pace import last_hour
from webhooks.pools import pools
from webhooks.watching import watch


@dataclass(frozen=True)
class Tile:
    """How many commands are in a state, and the list of them."""

    state: State
    count: int
    url: str

    @property
    def look(self) -> Look:
        return LOOKS[self.state]

    @property
    def words(self) -> str:
        return f"{intcomma(COUNTED_TO)}+" if self.count > COUNTED_TO else intcomma(self.count)


@permitted("commands:read")
@require_safe
def overview(request: ConsoleRequest) -> HttpResponse:
    """What needs a person first. Whatever of it passes by itself is not part of the revision."""
    organization, now = request.actor.organization, request.now
    workers = pools(now)
    waiting = service.needing_a_person(organization, now)
    groups = groups_of(waiting, watch(organization, now), workers)
    counts = service.counts(organization, now)
    minutes = last_hour(organization, now)
    tallies = [minute.tally for minute in minutes]
    revision = revision_of(groups, counts, minutes[0].start, tallies, workers)
    if answer := unchanged(request, revision):
        return answer
    context = {
        "groups": groups,
        "alive": any(pool.alive for pool in workers),
        "under_way": _tiles(UNDER_WAY, counts),
        "settled": _tiles(SETTLED, counts, "&within=24h"),
        "chart": chart_of(minutes),
        "workers": workers,
        "is_new": not (any(counts.values()) or of_organization(organization).exists()),
    }
    return live(request, "overview/page.html", "overview/_live.html", context, revision)


def _tiles(states: Sequence[State], counts: dict[State, int], narrower: str = "") -> list[Tile]:
    return [
        Tile(state, counts[state], f"{reverse('commands')}?state={state}{narrower}")
        for state in states
    ]
