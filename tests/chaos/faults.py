"""The faults: each has a name and one act, which returns when it is over and recovery may begin."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from django.conf import settings

from tests.chaos.census import Kind, waits_on_the_queue
from tests.chaos.cluster import Cluster
from tests.chaos.feeding import Feeder
from tests.chaos.patience import query, value
from tests.chaos.relay import Relay
from tests.chaos.stage import Stage

DATABASE_DOWN_S = 5.0
DISK_FULL_S = 15.0
ON_THE_WIRE = 50
# A worker that sleeps this long finds each of its attempts closed and its successor at work.
PAUSE_S = settings.LEASE_S + 8
# Waiting for a process, or for attempts to be on the wire: a bound, not a measurement.
PATIENCE_S = 30.0
# A transaction that the cut of the network leaves behind with the lock that every claim needs.
HOLDS_THE_CLAIM = b"pg_advisory_xact_lock"

T = TypeVar("T")

BUSY = "SELECT worker FROM webhooks_attempt WHERE finished_at IS NULL"
OPEN_AT = """
SELECT count(*) FROM webhooks_attempt WHERE finished_at IS NULL AND endpoint_id = %s
"""
TERMINATE_ALL = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
 WHERE pid <> pg_backend_pid() AND datname = current_database()
"""


class NotRun(Exception):
    """The fault cannot be made here; the message says why."""


@dataclass
class World:
    """What a fault may break."""

    stage: Stage
    relay: Relay
    cluster: Cluster
    feeder: Feeder
    random: random.Random

    def mend(self) -> None:
        """End whatever fault is under way."""
        self.relay.mend()
        self.stage.disk.free()
        self.stage.database.start()


class Fault(Protocol):
    """One way in which something breaks."""

    @property
    def name(self) -> str: ...

    def inject(self, world: World) -> None:
        """Break it; return when the fault is over. Raises NotRun."""


# --- processes ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kill:
    """``kill -9`` of one process."""

    what: str
    choose: Callable[[World], int]

    @property
    def name(self) -> str:
        return f"kill -9 {self.what}"

    def inject(self, world: World) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.choose(world), signal.SIGKILL)


def one(kind: Kind) -> Callable[[World], int]:
    """The only process of its kind."""
    return lambda world: world.random.choice(_living(world, kind))


def idle_worker(world: World) -> int:
    """A worker with nothing on the wire: more often than not the one that holds the queue's lock."""
    busy = _busy_workers()
    workers = _living(world, Kind.WORKER)
    return world.random.choice([pid for pid in workers if pid not in busy] or workers)


def busy_worker(world: World) -> int:
    """A worker with attempts on the wire; for lack of one, work is made."""
    world.feeder.burst("slow", 4)
    return _soon(
        lambda: next((pid for pid in _living(world, Kind.WORKER) if pid in _busy_workers()), None)
    )


KILLS = {
    "idle": Kill("an idle worker", idle_worker),
    "busy": Kill("a worker with work", busy_worker),
    "pusher": Kill("the pusher", one(Kind.PUSHER)),
    "monitor": Kill("the monitor", one(Kind.MONITOR)),
    "sentinel": Kill("the sentinel", one(Kind.SENTINEL)),
    "main": Kill("django-q2's parent", one(Kind.MAIN)),
    "watch": Kill("the watch", lambda world: world.cluster.watch),
}


class KillFrozenAndWatch:
    """A pool freezes, and before its watch has noticed the watch is killed: nobody is left to end it."""

    name = "kill -9 the watch of a frozen pool"

    def inject(self, world: World) -> None:
        for pid in _living(world, Kind.WORKER):
            os.kill(pid, signal.SIGSTOP)
        os.kill(world.cluster.watch, signal.SIGKILL)


class KillWatchAndMain:
    """The two that could end the pool die together: the sentinel is left with its processes."""

    name = "kill -9 watch and parent together"

    def inject(self, world: World) -> None:
        [parent] = _living(world, Kind.MAIN)
        os.kill(world.cluster.watch, signal.SIGKILL)
        os.kill(parent, signal.SIGKILL)


class StuckSentinel:
    """SIGSTOP of the sentinel, and a worker dies: as when it waits for a lock of the dead one."""

    name = "the sentinel stuck, a worker dead"

    def inject(self, world: World) -> None:
        [sentinel] = _living(world, Kind.SENTINEL)
        os.kill(sentinel, signal.SIGSTOP)
        os.kill(idle_worker(world), signal.SIGKILL)


class Paused:
    """SIGSTOP of a worker with attempts on the wire: no sign of it, as of a machine that swaps."""

    name = "SIGSTOP a worker with work"

    def __init__(self) -> None:
        self.pid = 0
        self.since = 0.0

    def inject(self, world: World) -> None:
        world.feeder.burst("slow", 16)
        self.pid = _soon(lambda: self._choose(world))
        os.kill(self.pid, signal.SIGSTOP)
        self.since = time.monotonic()

    def _choose(self, world: World) -> int | None:
        """Not the one that waits on the queue: its lock would freeze the pool, and the watch end it."""
        busy = _busy_workers() & set(_living(world, Kind.WORKER))
        return next((pid for pid in busy if not waits_on_the_queue(pid)), None)


class Resumed:
    """SIGCONT after its lease: what it still holds belongs to its successor."""

    name = "SIGCONT it past its lease"

    def __init__(self, paused: Paused) -> None:
        self._paused = paused

    def inject(self, world: World) -> None:
        time.sleep(max(self._paused.since + PAUSE_S - time.monotonic(), 0))
        try:
            os.kill(self._paused.pid, signal.SIGCONT)
        except ProcessLookupError:
            raise NotRun("the pool was started again meanwhile") from None


class Stop:
    """SIGTERM with fifty attempts on the wire: each must end and be recorded."""

    name = f"SIGTERM with {ON_THE_WIRE} attempts on the wire"

    def __init__(self) -> None:
        self.took_s = 0.0
        self.left_open = 0

    def inject(self, world: World) -> None:
        slow = world.feeder.endpoints["slow"].pk
        world.feeder.burst("slow", ON_THE_WIRE + 5)
        _soon(lambda: value(OPEN_AT, slow) >= ON_THE_WIRE or None)
        self.took_s = world.cluster.terminate()
        self.left_open = value(OPEN_AT, slow)


def _living(world: World, kind: Kind) -> list[int]:
    return _soon(lambda: world.cluster.pids(kind) or None)


def _busy_workers() -> set[int]:
    return {int(worker.rpartition(":")[2]) for (worker,) in query(BUSY)}


def _soon(what: Callable[[], T | None]) -> T:
    deadline = time.monotonic() + PATIENCE_S
    while (found := what()) is None:
        if time.monotonic() > deadline:
            raise NotRun(f"nothing to break within {PATIENCE_S:.0f} s")
        time.sleep(0.02)
    return found


# --- PostgreSQL ---------------------------------------------------------------------------------


class Restart:
    """PostgreSQL is stopped in good order, and started some seconds later."""

    name = "PostgreSQL stopped and started"

    def inject(self, world: World) -> None:
        world.stage.database.stop()
        time.sleep(DATABASE_DOWN_S)
        world.stage.database.start()


class Crash:
    """PostgreSQL ends without a word and recovers from its log."""

    name = "PostgreSQL crashed and started"

    def inject(self, world: World) -> None:
        world.stage.crash_database()
        world.stage.database.start()


class TerminateSessions:
    """Every session is cut, in whatever transaction it is."""

    name = "all sessions terminated"

    def inject(self, world: World) -> None:
        with contextlib.suppress(Exception):
            query(TERMINATE_ALL)


@dataclass(frozen=True)
class NetworkDrops:
    """All packets between workers and PostgreSQL vanish for a while; old connections stay dead."""

    seconds: float

    @property
    def name(self) -> str:
        return f"network drops packets for {self.seconds:.0f} s"

    def inject(self, world: World) -> None:
        try:
            world.relay.drop(HOLDS_THE_CLAIM, PATIENCE_S)
        except NotImplementedError as why:
            raise NotRun(str(why)) from None
        time.sleep(self.seconds)
        world.relay.mend()


@dataclass(frozen=True)
class NetworkStalls:
    """Everything is acknowledged and nothing arrives, then it goes on."""

    seconds: float

    @property
    def name(self) -> str:
        return f"network stalls for {self.seconds:.0f} s"

    def inject(self, world: World) -> None:
        world.relay.stall()
        time.sleep(self.seconds)
        world.relay.mend()


class NetworkResets:
    """Every connection is reset."""

    name = "all connections reset"

    def inject(self, world: World) -> None:
        world.relay.sever()


class DiskFull:
    """Not a byte is left for PostgreSQL's data for a while."""

    name = f"disk full for {DISK_FULL_S:.0f} s"

    def inject(self, world: World) -> None:
        try:
            world.stage.disk.fill()
        except NotImplementedError as why:
            raise NotRun(str(why)) from None
        time.sleep(DISK_FULL_S)
        world.stage.disk.free()
        # A server that could not write its log has ended: its supervisor would start it.
        world.stage.database.start()
