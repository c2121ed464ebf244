"""The engine under load: everything at once, or a steady stream beside what is measured."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import psycopg

from tests.benchmarks import fill
from tests.benchmarks.figures import BenchmarkFailed
from tests.benchmarks.fill import Batch
from tests.benchmarks.scene import Target
from tests.benchmarks.stage import Arena, wait_until
from tests.plain_sql import Connection

# How often the stream makes rows due: shorter than what is measured beside it.
STEP_S = 0.02
# Deliveries a second below which a burst is given up.
SLOWEST = 20
GRACE_S = 30.0

BUSY = """
SELECT EXISTS (SELECT FROM webhooks_delivery
                WHERE next_attempt_at IS NOT NULL AND next_attempt_at <= clock_timestamp())
    OR EXISTS (SELECT FROM webhooks_delivery WHERE lease_until IS NOT NULL)
"""

FIRST_START = """
SELECT extract(epoch FROM min(a.started_at))
  FROM bench_row r JOIN webhooks_attempt a ON a.delivery_id = r.delivery WHERE r.batch = %s
"""

NOT_DELIVERED = """
SELECT count(*) FROM bench_row r JOIN commands_command c ON c.id = r.command
 WHERE r.batch = %s AND c.state <> 'delivered'
"""


@dataclass(frozen=True)
class Burst:
    """Deliveries that became due at once, and how long until every command was `delivered`."""

    size: int
    seconds: float

    @property
    def per_second(self) -> float:
        return self.size / self.seconds


def burst(arena: Arena, targets: Sequence[Target], size: int) -> Burst:
    """Deliver so many commands as fast as it goes."""
    batch = fill.queued(arena.connection, arena.scene, targets, size)
    return release(arena, batch)


def release(arena: Arena, batch: Batch) -> Burst:
    """Make a prepared batch due at once. Counts from the first attempt's start to the moment when a
    look at the database finds nothing due and nothing in flight."""
    fill.make_due(arena.connection, batch)
    settle(arena, GRACE_S + batch.size / SLOWEST)
    ended = arena.value("SELECT extract(epoch FROM clock_timestamp())")
    seconds = ended - arena.value(FIRST_START, batch.number)
    if left := arena.value(NOT_DELIVERED, batch.number):
        raise BenchmarkFailed(f"{left:.0f} of {batch.size} commands were not delivered.")
    return Burst(batch.size, seconds)


def settle(arena: Arena, timeout_s: float = GRACE_S) -> None:
    """Wait until nothing is due and nothing in flight."""
    wait_until(lambda: not is_busy(arena), timeout_s, "everything due is delivered")


def is_busy(arena: Arena) -> bool:
    arena.check()
    return bool(arena.value(f"SELECT ({BUSY})::int"))


@contextlib.contextmanager
def stream(
    arena: Arena, targets: Sequence[Target], per_second: float, seconds: float
) -> Iterator[Batch]:
    """Deliveries that become due at a steady rate while the block runs, for so many seconds at most."""
    batch = fill.queued(arena.connection, arena.scene, targets, int(per_second * seconds))
    ended = threading.Event()
    with psycopg.connect(arena.url, autocommit=True) as sql:
        thread = threading.Thread(target=_make_due_steadily, args=(sql, batch, per_second, ended))
        thread.start()
        try:
            yield batch
        finally:
            ended.set()
            thread.join()


def _make_due_steadily(
    sql: Connection, batch: Batch, per_second: float, ended: threading.Event
) -> None:
    began, done = time.monotonic(), 0
    while done < batch.size and not ended.wait(STEP_S):
        due = min(batch.size, int((time.monotonic() - began) * per_second))
        if due > done:
            fill.make_due(sql, batch, done, due)
            done = due
