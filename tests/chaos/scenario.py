"""The scenario: faults one after the other under load, each until all is well again, then quiet."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice

from tests.chaos import faults
from tests.chaos.checks import Evidence, count_zeros, still_waiting
from tests.chaos.cluster import Cluster
from tests.chaos.faults import KILLS, Fault, NotRun, World
from tests.chaos.feeding import Feeder
from tests.chaos.loop import LoopThread
from tests.chaos.patience import value
from tests.chaos.receivers import Receivers
from tests.chaos.stage import Stage, url_through

# What is promised: deliveries go on within this time, without a person.
RECOVERY_S = 60.0
LOOK_S = 0.1
# Two more heartbeats: the last one before a pool froze may come after the fault.
STEADY = timedelta(seconds=2.5)
# A lost fourth attempt is followed ten minutes later; a lost third one two minutes after its lease.
QUIET_S = 240.0

# Idle workers most of all: one of them always holds the queue's lock.
ORDER = ("idle", "busy", "monitor", "watch", "pusher", "idle", "sentinel", "main", "idle")

NEXT_DELIVERY = """
SELECT min(settled_at) FROM webhooks_delivery WHERE state = 'delivered' AND created_at > %s
"""
WELL = """
SELECT EXISTS (SELECT FROM webhooks_heartbeat WHERE beat_at > %s)
   AND NOT EXISTS (SELECT FROM webhooks_delivery
                    WHERE endpoint_id = ANY(%s) AND next_attempt_at < now() - interval '1 s')
"""


@dataclass(frozen=True)
class Plan:
    """How much is broken, for how long."""

    kills: int
    cut_s: float
    per_second: float
    seed: int
    only: str
    quick: bool

    def faults(self) -> list[Fault]:
        """What happens, in an order that the seed decides. A worker resumes after it was paused."""
        chosen: list[Fault] = [KILLS[kind] for kind in islice(cycle(ORDER), self.kills)]
        chosen = [fault for fault in chosen + self._outages() if self.only in fault.name]
        random.Random(self.seed).shuffle(chosen)
        return [one for fault in chosen for one in _with_sequel(fault)]

    def _outages(self) -> list[Fault]:
        brief: list[Fault] = [
            faults.Restart(),
            faults.NetworkDrops(self.cut_s),
            faults.TerminateSessions(),
        ]
        if self.quick:
            return brief
        return [
            *brief,
            faults.Crash(),
            faults.NetworkStalls(self.cut_s),
            faults.NetworkResets(),
            faults.DiskFull(),
            faults.Stop(),
            faults.Paused(),
            faults.KillFrozenAndWatch(),
            faults.KillWatchAndMain(),
            faults.StuckSentinel(),
        ]


def _with_sequel(fault: Fault) -> list[Fault]:
    return [fault, faults.Resumed(fault)] if isinstance(fault, faults.Paused) else [fault]


@dataclass(frozen=True)
class Recovery:
    """What a fault cost: seconds until the next new delivery was completed, and until all was well."""

    fault: str
    next_delivery_s: float | None = None
    well_s: float | None = None
    not_run: str = ""

    @property
    def in_time(self) -> bool:
        return bool(self.not_run) or (self.next_delivery_s is not None and self.well_s is not None)


@dataclass(frozen=True)
class Result:
    """The run in figures."""

    planned: int
    recoveries: Sequence[Recovery]
    accepted: int
    posts: int
    lost_attempts: int
    delivered: int
    failed: int
    still_waiting: int
    quiet_after_s: float
    stop_s: float
    zeros: dict[str, int]

    @property
    def passed(self) -> bool:
        complete = len(self.recoveries) == self.planned
        in_time = all(recovery.in_time for recovery in self.recoveries)
        return complete and in_time and not any(self.zeros.values()) and not self.still_waiting


Progress = Callable[[str], None]


@contextlib.contextmanager
def world_on(stage: Stage, plan: Plan) -> Iterator[tuple[World, Receivers]]:
    """Receivers, network, workers and work; all of it is ended in the end."""
    loop = LoopThread()
    try:
        receivers = Receivers(loop)
        relay = stage.relay(loop)
        feeder = Feeder(receivers, plan.per_second)
        cluster = Cluster(url_through(relay), stage.folder / "cluster.log")
        try:
            feeder.start()
            generator = random.Random(plan.seed)
            yield World(stage, relay, cluster, feeder, generator), receivers
        finally:
            feeder.stop()
            cluster.end_by_force()
    finally:
        loop.stop()


def play(stage: Stage, plan: Plan, progress: Progress) -> Result:
    """Break what the plan says, wait until it is quiet, and count."""
    with world_on(stage, plan) as (world, receivers):
        start = _recover(world, "start", datetime.now(UTC))
        progress(f"the workers are at work after {start.well_s or RECOVERY_S:.1f} s")
        planned = plan.faults()
        progress(f"{len(planned)} faults; {RECOVERY_S:.0f} s at most to recover from each")
        recoveries = _break_all(world, planned, progress)
        world.feeder.stop()
        receivers.be_kind()
        quiet_after_s = _wait_until_quiet(progress)
        return _count(world, receivers, planned, recoveries, quiet_after_s)


def _break_all(world: World, planned: Sequence[Fault], progress: Progress) -> list[Recovery]:
    """One after the other; Ctrl-C ends that, and what there is is counted."""
    recoveries: list[Recovery] = []
    try:
        for number, fault in enumerate(planned, start=1):
            recoveries.append(_break(world, fault))
            progress(f"[{number:3}/{len(planned)}] {_told(recoveries[-1])}")
    except KeyboardInterrupt:
        progress("interrupted: no more faults, counting (once more: end at once)")
        world.mend()
    return recoveries


def _break(world: World, fault: Fault) -> Recovery:
    try:
        fault.inject(world)
    except NotRun as why:
        return Recovery(fault.name, not_run=str(why))
    return _recover(world, fault.name, datetime.now(UTC))


def _recover(world: World, name: str, since: datetime) -> Recovery:
    """Watch until all is well again, for as long as is promised."""
    began = time.monotonic()
    next_s = well_s = None
    while (elapsed := time.monotonic() - began) < RECOVERY_S and well_s is None:
        time.sleep(LOOK_S)
        if next_s is None and (at := value(NEXT_DELIVERY, since)):
            next_s = (at - since).total_seconds()
        if next_s is not None and _is_well(world, since):
            well_s = elapsed
    return Recovery(name, next_s, well_s)


def _is_well(world: World, since: datetime) -> bool:
    """The pool is whole, shows signs of life, and nothing waits that should not."""
    prompt = [world.feeder.endpoints[name].pk for name in ("healthy", "flaky", "events")]
    return world.cluster.is_whole() and value(WELL, since + STEADY, prompt)


def _wait_until_quiet(progress: Progress) -> float:
    began = reported = time.monotonic()
    while (waiting := still_waiting()) and time.monotonic() - began < QUIET_S:
        if time.monotonic() - reported > 10:
            reported = time.monotonic()
            progress(f"no more work comes; {waiting} deliveries still wait for an attempt")
        time.sleep(LOOK_S)
    return time.monotonic() - began


def _count(
    world: World,
    receivers: Receivers,
    planned: Sequence[Fault],
    recoveries: Sequence[Recovery],
    quiet_after_s: float,
) -> Result:
    _let_deadlines_pass()
    waiting = still_waiting()
    left = world.cluster.stop()
    stops = [fault for fault in planned if isinstance(fault, faults.Stop)]
    evidence = Evidence(
        accepted=world.feeder.accepted,
        posts=receivers.posts,
        left_behind=len(left),
        left_open_by_a_stop=sum(stop.left_open for stop in stops),
    )
    return Result(
        planned=len(planned),
        recoveries=recoveries,
        accepted=len(evidence.accepted),
        posts=len(evidence.posts),
        lost_attempts=value("SELECT count(*) FROM webhooks_attempt WHERE verdict = 'lost'"),
        delivered=value("SELECT count(*) FROM webhooks_delivery WHERE state = 'delivered'"),
        failed=value("SELECT count(*) FROM webhooks_delivery WHERE state = 'failed'"),
        still_waiting=waiting,
        quiet_after_s=quiet_after_s,
        stop_s=max((stop.took_s for stop in stops), default=0.0),
        zeros=count_zeros(evidence),
    )


def _let_deadlines_pass() -> None:
    """The last commands' deadlines come after their deliveries; so does the sweep."""
    latest = value("SELECT max(ack_deadline) FROM commands_command WHERE state = 'delivered'")
    if latest:
        time.sleep(max((latest - datetime.now(UTC)).total_seconds() + 2, 0))


def _told(recovery: Recovery) -> str:
    if recovery.not_run:
        return f"{recovery.fault}: not run, {recovery.not_run}"
    return (
        f"{recovery.fault}: next delivery {_seconds(recovery.next_delivery_s)}, "
        f"all well {_seconds(recovery.well_s)}"
    )


def _seconds(seconds: float | None) -> str:
    return "NOT IN TIME" if seconds is None else f"{seconds:.1f} s"
