"""What needs a person now, as the overview lists it: kinds with what to do, things with their pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.contrib.humanize.templatetags.humanize import intcomma
from django.urls import reverse

from commands.console.states import REFUSALS
from commands.overview import SHOWN, Line, Some, Waiting
from webhooks.console.rows import EndpointRow
from webhooks.console.strip import Strip, strip_of
from webhooks.pools import Pool
from webhooks.watching import Ailing, Behind, Watched


@dataclass(frozen=True)
class Kind:
    """Why something is listed, how that looks, what to do, and the page that has all of it."""

    key: str
    title: str
    icon: str
    family: str
    advice: str
    page: str = ""
    query: str = ""

    @property
    def url(self) -> str:
        return f"{reverse(self.page)}{self.query}" if self.page else ""


NO_WORKER: Final = Kind(
    "no-worker",
    "No worker is alive",
    "stale",
    "bad",
    "Nothing is sent and no deadline is kept. Start the workers on their host: manage.py cluster.",
)
TIMED_OUT: Final = Kind(
    "timed-out",
    "Timed out",
    "timed_out",
    "person",
    "Nobody knows what the vehicle did. Of the last 24 h, neither reissued nor retracted.",
    "commands",
    "?state=timed_out",
)
DISABLED: Final = Kind(
    "disabled",
    "Endpoints disabled",
    "disabled",
    "person",
    "Nothing is sent there until an owner enables it by hand.",
    "endpoints",
)
FAILING: Final = Kind(
    "failing",
    "Endpoints failing",
    "failed",
    "bad",
    "The last attempts there all failed. A few more, and nothing is sent any more.",
    "endpoints",
)
REFUSED: Final = Kind(
    "refused",
    "Dispatch refused",
    "refused",
    "person",
    "Still logged. Mend the cause and dispatch again, or retract.",
    "commands",
    "?state=refused",
)
DEADLINES: Final = Kind(
    "deadlines",
    "About to time out",
    "delivered",
    "waiting",
    "Delivered, not reported, and the last third of the time runs: 2 min at most.",
    "commands",
    "?state=delivered",
)
BEHIND: Final = Kind(
    "behind",
    "Work is late",
    "queued",
    "waiting",
    "Due for more than 5 s and not begun.",
    "deliveries",
)


@dataclass(frozen=True)
class Item:
    """One thing to look at. ``since`` is worded as long ago, ``until`` counts down."""

    key: str
    name: str
    detail: str
    url: str = ""
    token: str = ""
    since: datetime | None = None
    until: datetime | None = None
    strip: Strip | None = None


@dataclass(frozen=True)
class Group:
    """Things of one kind, the first few named. With ``at_least`` there may be more than the total."""

    kind: Kind
    items: Sequence[Item]
    total: int
    at_least: bool = False

    @property
    def count(self) -> str:
        return f"{intcomma(self.total)}{'+' if self.at_least else ''}"

    @property
    def more(self) -> str:
        """How many are not named; empty when all are."""
        unnamed = self.total - len(self.items)
        if not unnamed:
            return ""
        return f"and {intcomma(unnamed)} {'or more' if self.at_least else 'more'}"


def groups_of(waiting: Waiting, watched: Watched, pools: Sequence[Pool]) -> list[Group]:
    """Every kind of which there is something, the most pressing first."""
    alive = any(pool.alive for pool in pools)
    groups = [
        _commands(TIMED_OUT, waiting.timed_out),
        _of(DISABLED, [_disabled(one) for one in watched.disabled]),
        _of(FAILING, [_failing(one) for one in watched.failing]),
        _commands(REFUSED, waiting.refused),
        _commands(DEADLINES, waiting.deadlines),
        _of(BEHIND, [_behind(one, alive) for one in watched.behind]),
    ]
    found = [group for group in groups if group.items]
    return found if alive else [Group(NO_WORKER, list(_silent(pools)), len(pools)), *found]


def _of(kind: Kind, items: Sequence[Item]) -> Group:
    return Group(kind, items[:SHOWN], len(items))


def _commands(kind: Kind, some: Some) -> Group:
    items = [_command(kind, line) for line in some.lines]
    return Group(kind, items, some.total, some.at_the_bound)


def _command(kind: Kind, line: Line) -> Item:
    return Item(
        key=str(line.pk),
        url=reverse("command", args=[line.pk]),
        name=line.name,
        token=line.client_token,
        detail=REFUSALS.get(line.reason, line.reason) or line.dataset,
        since=None if kind is DEADLINES else line.at,
        until=line.at if kind is DEADLINES else None,
    )


def _disabled(one: Ailing) -> Item:
    row = _row(one)
    return _endpoint(row, row.disabled_because, since=row.endpoint.disabled_at)


def _failing(one: Ailing) -> Item:
    row = _row(one)
    return _endpoint(row, row.warning)


def _row(one: Ailing) -> EndpointRow:
    return EndpointRow(one.endpoint, one.health, strip_of(one.health.recent_outcomes))


def _endpoint(row: EndpointRow, detail: str, since: datetime | None = None) -> Item:
    return Item(
        key=str(row.endpoint.pk),
        url=reverse("endpoint", args=[row.endpoint.pk]),
        name=row.endpoint.name,
        detail=detail,
        since=since,
        strip=row.strip,
    )


def _behind(one: Behind, alive: bool) -> Item:
    """Behind a receiver that is slow to answer, or behind workers that do not get to it."""
    waits = f"waits its turn: {one.in_flight} on the wire"
    stands = "nothing is on the wire: the workers do not get to it" if alive else "no worker"
    return Item(
        key=str(one.endpoint.pk),
        url=reverse("endpoint", args=[one.endpoint.pk]),
        name=one.endpoint.name,
        detail=waits if one.in_flight else stands,
        since=one.due_at,
    )


def _silent(pools: Sequence[Pool]) -> Iterator[Item]:
    for place, pool in enumerate(pools):
        yield Item(f"pool-{place}", pool.host, "last heartbeat", since=pool.last_beat_at)
