"""Northwind Robotics, an hour into its day: every state of a command, a receiver that went down, notices.

All of it is made by the console's own services, with answers made up as the tests make them; nothing is
sent. ``tests.screenshots.hour`` then moves what happened to when it is to have happened.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from commands import datasets, issuing, lifecycle, settling
from commands.errors import DispatchRefused
from commands.models import Command, Dataset
from commands.rules.reports import Outcome as Report
from organizations.actors import Actor
from organizations.models import Notice
from organizations.notices import outbox
from organizations.provisioning import provision
from organizations.rules import roles
from tests import factories
from tests.factories import Scene, answer, claim, fresh, outcome, record
from webhooks import endpoints
from webhooks.models import Delivery, Endpoint
from webhooks.rules.verdicts import verdict_on_error

COMMANDS = (
    ("dock", {"berth": 4, "approach": "slow"}),
    ("undock", {"berth": 7}),
    ("set_speed", {"metersPerSecond": 1.2}),
    ("return_to_base", {"reason": "low battery"}),
    ("calibrate_arm", {"arm": "left", "passes": 3}),
    ("open_bay", {"bay": 2}),
    ("start_charge", {"targetPercent": 80}),
)
AT_HOME, AT_WORK, PROGRAM = "203.0.113.7", "203.0.113.24", "198.51.100.7"
REFUSAL = b'{"error":"speed_limit","detail":"1.2 m/s is over the limit of 1.0 m/s in zone B"}'
ERRORS = {
    "timeout": "No complete answer within 10 s.",
    "connection_refused": "The receiver refused the connection.",
    "tls": "TLS failed: the certificate has expired.",
}
BUSY = b"upstream connect error or disconnect/reset before headers\n"


@dataclass
class Told:
    """A command and when it was issued, in seconds before now."""

    command: Command
    ago_s: float
    # Milliseconds that each of its attempts took.
    durations: list[int] = field(default_factory=list)


@dataclass
class Day:
    """The organization with all that happened."""

    scene: Scene
    berth4: Dataset
    berth7: Dataset
    pack: Dataset
    long_haul: Dataset
    told: list[Told] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def operator(self) -> Actor:
        """At the console."""
        return replace(self.scene.operator, via="console", address=AT_WORK)

    @property
    def integrator(self) -> Actor:
        """A program that reports outcomes."""
        return replace(self.scene.operator, via="api", address=PROGRAM)

    def issue(self, ago_s: float, dataset: Dataset) -> Told:
        number = next(self._numbers)
        name, parameters = COMMANDS[number % len(COMMANDS)]
        token = f"{name.replace('_', '-')}-{number * 7919 % 100_000:05}"
        issued = issuing.issue(self.operator, dataset, token, name, parameters)
        told = Told(issued.command, ago_s)
        self.told.append(told)
        return told

    def dispatch(self, ago_s: float, dataset: Dataset, timeout_s: int = 300) -> Told:
        told = self.issue(ago_s, dataset)
        told.command = lifecycle.dispatch(self.operator, told.command.pk, timeout_s)
        return told

    def attempt(
        self, told: Told, end: int | str, excerpt: bytes = b"", retry_after: str = ""
    ) -> None:
        """One attempt that ended so, after a time that suits it."""
        claimed = claim(told.command)
        took = 10_000 if end == "timeout" else 40 + 37 * (len(self.told) % 7) + 11 * claimed.number
        told.durations.append(took)
        if isinstance(end, str):
            verdict = verdict_on_error(claimed.policy, end)
            record(outcome(claimed, verdict, None, error_kind=end, error=ERRORS[end]))
        else:
            facts: dict[str, Any] = {"response_excerpt": excerpt, "retry_after": retry_after}
            record(answer(claimed, end, duration_ms=took, **facts))
        told.command = fresh(told.command)


def prepare() -> Day:
    """Everybody and everything, without a past."""
    provisioned = provision("Northwind Robotics", domain="northwind.example")
    owner = replace(provisioned.actor(roles.OWNER), via="console", address=AT_HOME)
    gateway = factories.new_endpoint(
        owner,
        name="Dock gateway",
        url="https://93.184.216.34/northwind/commands",
        description="Takes commands of both docks. Run by the platform team.",
        headers={"X-Tenant": "northwind"},
    )
    lab = factories.new_endpoint(
        owner,
        "telemetry",
        name="Battery lab",
        url="https://93.184.216.34/lab/hook",
        receives_commands=True,
    )
    docks = datasets.create_experiment(owner, "Autumn dock trials")
    packs = datasets.create_experiment(owner, "Battery ageing")
    berth4 = datasets.arm(owner, datasets.create_dataset(owner, docks, "Berth 4").pk)
    berth7 = datasets.create_dataset(owner, docks, "Berth 7")
    pack = datasets.arm(owner, datasets.create_dataset(owner, packs, "Pack A").pk)
    long_haul = datasets.arm(owner, datasets.create_dataset(owner, packs, "Long haul", lab).pk)
    scene = Scene(provisioned, docks, berth4, gateway)
    return Day(scene, berth4, berth7, pack, long_haul)


def live(day: Day) -> None:
    """The hour, oldest first."""
    owner = day.scene.owner
    ledger = factories.new_endpoint(
        owner, "event", name="Ledger", url="https://93.184.216.34/ledger", event_types=["command.*"]
    )
    relay = factories.new_endpoint(owner, name="Old relay", url="https://93.184.216.35/relay")
    _fail_until_disabled(day, relay)
    for minute in range(58, 5, -1):
        for ago_s in (minute * 60 + 12, minute * 60 - 21)[: 1 + minute % 2]:
            _story(minute)(day, ago_s)
    _what_goes_on(day)
    _deliver_events(ledger)
    _send_some_mail()
    endpoints.ping(replace(owner, via="console", address=AT_HOME), ledger.pk)
    factories.fail_with(Delivery.objects.filter(is_ping=True).latest("pk"), [200])


def _story(minute: int) -> Callable[[Day, float], None]:
    """What happens in that minute: most goes well."""
    return {
        3: flaky,
        9: refused,
        14: silent,
        21: flaky,
        26: rejected,
        33: withdrawn,
        40: flaky,
    }.get(minute % 41, fine)


def fine(day: Day, ago_s: float) -> None:
    told = day.dispatch(ago_s, day.berth4 if len(day.told) % 3 else day.pack)
    day.attempt(told, 200, b'{"accepted":true}')
    lifecycle.acknowledge(day.integrator, told.command.pk, Report.SUCCESS, "Done.")


def flaky(day: Day, ago_s: float) -> None:
    told = day.dispatch(ago_s, day.pack)
    day.attempt(told, 503, BUSY)
    day.attempt(told, 200, b'{"accepted":true}')
    lifecycle.acknowledge(day.integrator, told.command.pk, Report.SUCCESS)


def refused(day: Day, ago_s: float) -> None:
    day.attempt(day.dispatch(ago_s, day.berth4), 422, REFUSAL)


def rejected(day: Day, ago_s: float) -> None:
    told = day.dispatch(ago_s, day.berth4)
    day.attempt(told, 200)
    detail = "The bay door is blocked by a pallet."
    lifecycle.acknowledge(day.integrator, told.command.pk, Report.REJECTION, detail)


def withdrawn(day: Day, ago_s: float) -> None:
    told = day.dispatch(ago_s, day.berth4)
    day.attempt(told, 503, BUSY)
    lifecycle.retract(day.operator, told.command.pk, "Wrong berth.")


def silent(day: Day, ago_s: float) -> None:
    """Delivered and never reported on."""
    told = day.dispatch(ago_s, day.berth4, timeout_s=0)
    claimed = claim(told.command)
    told.durations.append(52)
    deadline = told.command.ack_deadline
    assert deadline
    record(answer(claimed, 200, finished_at=deadline - timedelta(microseconds=1), duration_ms=52))
    settling.time_out_overdue()


def _what_goes_on(day: Day) -> None:
    """The last minutes: what is under way, waits, or never began."""
    silent(day, 330)
    waiting = day.dispatch(200, day.berth4)
    day.attempt(waiting, 200)
    long_haul = day.dispatch(110, day.long_haul, timeout_s=3600)
    for _ in range(3):
        day.attempt(long_haul, "connection_refused")
    retrying = day.dispatch(62, day.berth4, timeout_s=900)
    day.attempt(retrying, 503, BUSY, retry_after="30")
    day.attempt(retrying, "timeout")
    day.attempt(retrying, 502, b"<html><h1>502 Bad Gateway</h1></html>")
    day.attempt(day.dispatch(48, day.pack), 200)
    with contextlib.suppress(DispatchRefused):
        day.dispatch(35, day.berth7)
    day.issue(1, day.pack)


def _fail_until_disabled(day: Day, relay: Endpoint) -> None:
    """Four commands, each tried five times."""
    dataset = datasets.create_dataset(day.scene.owner, day.scene.experiment, "Yard", relay)
    datasets.arm(day.scene.owner, dataset.pk)
    commands = [day.dispatch(3_560 - 9 * number, dataset) for number in range(4)]
    for number in range(5):
        for told in commands:
            day.attempt(told, "tls" if number % 3 else 500)


def _deliver_events(ledger: Endpoint) -> None:
    """Each at once, but for one in nine, whose first attempt fails."""
    told = Delivery.objects.filter(endpoint=ledger, state="pending").order_by("pk")
    for number, delivery in enumerate(told):
        if number % 9 == 4:
            record(answer(claim(delivery), 503, duration_ms=212, response_excerpt=BUSY))
        record(answer(claim(delivery), 200, duration_ms=31, response_excerpt=b"ok"))


def _send_some_mail() -> None:
    """All notices but the newest were sent."""
    Notice.objects.update(next_try_at="2020-01-01T00:00:00Z")
    while mail := outbox.claim():
        outbox.record_sent(mail, Notice.Channel.MAIL)
