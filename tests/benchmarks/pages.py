"""``python -m tests.benchmarks --pages``: how fast the console's pages are with a million commands.

Every page of the URL configuration, and the faces of some that ask more of the database, through the web
server of the Procfile: the time to the first byte, and the time in which a poll learns that there is
nothing new. The organization is filled in first, with three attempts a command.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from config.database import data_dir_from_environment
from config.processes import adopt_orphans, kill_descendants
from tests.benchmarks import crowd, machine
from tests.benchmarks.crowd import ENDPOINTS, Crowd
from tests.benchmarks.figures import BenchmarkFailed, percentile
from tests.benchmarks.progress import Progress
from tests.served import prepared, web

if TYPE_CHECKING:
    from tests.pages import Things

SIZE: Final = 1_000_000
ROUNDS: Final = 30
# Before anything counts: caches are warm, plans made.
WARM_UP: Final = 3
AIM_PAGE_MS: Final = 200.0
AIM_POLL_MS: Final = 10.0
BEGIN: Final = "<!-- pages: written by the benchmarks -->"
END: Final = "<!-- end of the pages -->"
LIVE = re.compile(r"<\w+[^>]*\bdata-live\b[^>]*>")
ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')


@dataclass(frozen=True)
class Timed:
    """A page's times in milliseconds; those of a poll are None where a page is not live."""

    page: str
    first_byte: float
    first_byte_p95: float
    poll: float | None = None
    poll_p95: float | None = None

    @property
    def met(self) -> bool:
        return self.first_byte <= AIM_PAGE_MS and (self.poll or 0) <= AIM_POLL_MS


@dataclass(frozen=True)
class Pages:
    """What one run found."""

    size: int
    ended_at: str
    machine: dict[str, str]
    pages: list[Timed]

    @classmethod
    def from_json(cls, text: str) -> Pages:
        facts = json.loads(text)
        return cls(pages=[Timed(**page) for page in facts.pop("pages")], **facts)

    @property
    def as_markdown(self) -> str:
        rows = [
            f"| {one.page} | {one.first_byte:.0f} | {one.first_byte_p95:.0f} | {_ms(one.poll)} |"
            f" {_ms(one.poll_p95)} | {'met' if one.met else 'missed'} |"
            for one in self.pages
        ]
        facts = "; ".join(f"{name} {fact}" for name, fact in self.machine.items())
        return "\n".join(
            [
                f"{self.size:,} commands, {self.ended_at}. {facts[0].upper()}{facts[1:]}.",
                "",
                "| page | first byte, ms | p95 | a poll of nothing new, ms | p95 | |",
                "|---|---:|---:|---:|---:|---|",
                *rows,
            ]
        )

    def write_into(self, page: Path) -> None:
        """Replace what stands between the page's two marks."""
        before, begin, rest = page.read_text().partition(BEGIN)
        _, end, after = rest.partition(END)
        if not begin or not end:
            raise BenchmarkFailed(f"{page} lacks the marks {BEGIN} and {END}.")
        page.write_text(f"{before}{BEGIN}\n\n{self.as_markdown}\n\n{END}{after}")


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks --pages", description=__doc__)
    parser.add_argument("--size", type=int, default=SIZE, help=f"commands ({SIZE:,})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="times each page is asked for")
    parser.add_argument("--json", type=Path, help="where to write it (CONSOLE_DATA_DIR)")
    parser.add_argument("--markdown", type=Path, help="a page whose section to replace")
    parser.add_argument("--read", type=Path, help="measure nothing: take the figures of this JSON")
    options = parser.parse_args(arguments)
    found = Pages.from_json(options.read.read_text()) if options.read else _kept(options)
    print(found.as_markdown)
    if options.markdown:
        found.write_into(options.markdown)
    return 0


def _kept(options: argparse.Namespace) -> Pages:
    """Measured, and written down as JSON."""
    path: Path = options.json or data_dir_from_environment() / "pages.json"
    found = _measured(options.size, options.rounds)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(found), indent=2) + "\n")
    return found


def _measured(size: int, rounds: int) -> Pages:
    progress = Progress()
    adopt_orphans()
    with contextlib.ExitStack() as at_the_end:
        at_the_end.callback(kill_descendants)
        database = at_the_end.enter_context(prepared())
        facts = {name: fact for name, fact in machine.facts(Path.cwd()).items() if name != "fsync"}
        organization = _organization()
        crowd.fill(
            database.url, organization, size, lambda what: progress.note(f"filling in {what}")
        )
        addresses, cookie = _addresses(organization), _cookie(organization)
        visitor = Visitor(at_the_end.enter_context(web()), cookie)
        timed = []
        for name, address in addresses.items():
            progress.show(name)
            timed.append(visitor.time(name.replace("_", " "), address, rounds))
        progress.clear()
    return Pages(size, datetime.now(UTC).isoformat(" ", "minutes"), facts, timed)


class Visitor:
    """Somebody signed in, on one connection that is kept."""

    def __init__(self, url: str, cookie: str) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=60)
        self._headers = {"Cookie": cookie, "Accept-Encoding": "identity"}

    def time(self, name: str, address: str, rounds: int) -> Timed:
        """Ask for a page, and for news of it, again and again."""
        shown = [self._get(address) for _ in range(WARM_UP + rounds)][WARM_UP:]
        for answer in shown:
            if answer.status != 200:
                raise BenchmarkFailed(f"{name} ({address}) answered {answer.status}.")
        times = [answer.ms for answer in shown]
        page = Timed(name, median(times), percentile(times, 0.95))
        if not (live := LIVE.search(shown[-1].text)):
            return page
        polls = self._poll(dict(ATTRIBUTE.findall(live[0])), rounds)
        return Timed(
            name, page.first_byte, page.first_byte_p95, median(polls), percentile(polls, 0.95)
        )

    def _poll(self, live: dict[str, str], rounds: int) -> list[float]:
        """How long the answers took that there is nothing new."""
        revision, times = live["data-revision"], []
        address = live["hx-get"].replace("&amp;", "&")
        for _ in range(10 * rounds):
            asked = {"HX-Request": "true", "HX-Target": live["id"], "X-Revision": revision}
            answer = self._get(address, asked)
            if answer.status == 204:
                times.append(answer.ms)
            else:
                # Time itself is news: a day began, a deadline passed.
                revision = answer.revision
            if len(times) == rounds:
                return times
        raise BenchmarkFailed(f"{address} has news at nearly every poll.")

    def _get(self, address: str, headers: dict[str, str] | None = None) -> Answer:
        began = time.perf_counter()
        self._connection.request("GET", address, headers={**self._headers, **(headers or {})})
        response = self._connection.getresponse()
        first_byte = (time.perf_counter() - began) * 1000
        text = response.read().decode()
        return Answer(response.status, first_byte, text, response.headers.get("X-Revision", ""))


@dataclass(frozen=True)
class Answer:
    """``ms`` until its first byte."""

    status: int
    ms: float
    text: str
    revision: str


# --- who and what -------------------------------------------------------------------------------


def _organization() -> Crowd:
    from commands import datasets
    from organizations.provisioning import provision
    from organizations.rules import roles
    from tests.factories import new_endpoint

    made = provision("Benchmarks")
    owner = made.actor(roles.OWNER)
    experiment = datasets.create_experiment(owner, "Benchmarks")
    endpoints = [new_endpoint(owner) for _ in range(ENDPOINTS)]
    own = [
        datasets.create_dataset(owner, experiment, f"Dataset {number}", endpoint)
        for number, endpoint in enumerate(endpoints)
    ]
    for dataset in own[1:]:
        datasets.arm(owner, dataset.pk)
    return Crowd(
        organization=made.organization.pk,
        issuer=made.members[roles.OPERATOR].membership.user_id,
        owner=made.members[roles.OWNER].membership.pk,
        endpoints=[endpoint.pk for endpoint in endpoints],
        datasets=[dataset.pk for dataset in own],
    )


def _things(organization: Crowd) -> Things:
    from commands.models import Command, Dataset
    from organizations.models import ApiKey, Membership
    from tests.pages import Things
    from webhooks.models import Delivery, Endpoint, Event

    def newest(state: str) -> Command:
        return Command.objects.filter(state=state, organization=organization.organization).latest(
            "pk"
        )

    command = newest("queued")
    endpoint = Endpoint.objects.get(pk=organization.endpoints[1])
    return Things(
        command=command,
        logged=newest("logged"),
        lost=newest("timed_out"),
        armed=Dataset.objects.filter(armed=True).latest("pk"),
        unarmed=Dataset.objects.get(armed=False),
        endpoint=endpoint,
        disabled=endpoint,
        watcher=endpoint,
        delivery=Delivery.objects.filter(policy="event").latest("pk"),
        event=Event.objects.filter(published=True).latest("pk"),
        member=Membership.objects.get(user_id=organization.issuer),
        key=ApiKey.objects.get(user_id=organization.issuer),
    )


def _addresses(organization: Crowd) -> dict[str, str]:
    """Every page, and the faces that ask more of the database."""
    from django.urls import NoReverseMatch, reverse

    from tests.pages import addresses
    from webhooks.models import Attempt

    things = _things(organization)
    found = addresses(things)
    middle = Attempt.objects.latest("pk").pk // 2
    faces: list[tuple[str, str, Any, str]] = [
        ("commands, failed", "commands", None, "state=failed"),
        ("commands, timed out", "commands", None, "state=timed_out"),
        ("commands of a dataset", "commands", None, f"dataset={things.armed.pk}"),
        ("commands, by token", "commands", None, "q=crowd-77"),
        ("commands, nothing found", "commands", None, "q=nothing-like-it"),
        ("an endpoint, far back", "endpoint", things.endpoint.pk, f"before={middle}"),
        ("an endpoint's failures", "endpoint", things.endpoint.pk, "outcome=failed"),
        ("deliveries, failed", "deliveries", None, "state=failed"),
        ("events of a type", "events", None, "type=command.failed"),
        ("audit of an act", "audit", None, "act=endpoint.edit"),
    ]
    for face, name, pk, query in faces:
        with contextlib.suppress(NoReverseMatch):
            found[face] = f"{reverse(name, args=[pk] if pk else [])}?{query}"
    return found


def _cookie(organization: Crowd) -> str:
    from django.conf import settings
    from django.test import Client

    from organizations.models import Membership

    client = Client()
    client.force_login(Membership.objects.get(pk=organization.owner).user)
    return f"{settings.SESSION_COOKIE_NAME}={client.cookies[settings.SESSION_COOKIE_NAME].value}"
