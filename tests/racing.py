"""Real threads with connections of their own, let go at the same moment."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from django.db import connection, transaction

T = TypeVar("T")

# Far above what any race here needs, PostgreSQL's own detection of deadlocks (1 s) included.
PATIENCE_S = 30.0


def race(*runners: Callable[[], T]) -> list[Future[T]]:
    """Run each in a thread of its own, all from the same moment; what came of each, in their order.

    ``result()`` of a future gives what its runner returned or raises what it raised. A runner that
    does not end fails the test.
    """
    barrier = threading.Barrier(len(runners))

    def run(runner: Callable[[], T]) -> T:
        connection.ensure_connection()
        barrier.wait(PATIENCE_S)
        return with_own_connection(runner)

    with ThreadPoolExecutor(len(runners)) as pool:
        futures = [pool.submit(run, runner) for runner in runners]
        for future in futures:
            future.exception(PATIENCE_S)
    return futures


def results(futures: list[Future[T]], *expected: type[Exception]) -> list[T | None]:
    """What the runners returned; None for one that raised what is expected, anything else is raised."""
    found: list[T | None] = []
    for future in futures:
        error = future.exception()
        if error is not None and not isinstance(error, expected):
            raise error
        found.append(None if error else future.result())
    return found


def wait_until_somebody_waits_for_us() -> None:
    """Return as soon as another connection waits for a lock that this transaction holds."""
    pause, started = threading.Event(), time.monotonic()
    with connection.cursor() as cursor:
        while time.monotonic() - started < PATIENCE_S:
            cursor.execute(
                "SELECT pg_stat_clear_snapshot(), EXISTS (SELECT FROM pg_stat_activity"
                " WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid)))"
            )
            if cursor.fetchone()[1]:
                return
            pause.wait(0.005)
    raise AssertionError("nobody waits for this transaction")


def wait_until_waiting(count: int) -> None:
    """Return as soon as so many connections wait for an advisory lock."""
    pause, started = threading.Event(), time.monotonic()
    with connection.cursor() as cursor:
        while time.monotonic() - started < PATIENCE_S:
            cursor.execute(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
                " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
            if cursor.fetchone()[0] == count:
                return
            pause.wait(0.005)
    raise AssertionError(f"never do {count} wait")


@contextmanager
def meanwhile(runner: Callable[[], T]) -> Iterator[Future[T]]:
    """A transaction that ``runner``, in a thread of its own, comes to wait for; then it commits.

    The future is done when the block is left and the other thread has ended.
    """
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            holder: Future[T] = Future()
            yield holder
            future = pool.submit(with_own_connection, runner)
            wait_until_somebody_waits_for_us()
        _hand_over(future, holder)


def with_own_connection(runner: Callable[[], T]) -> T:
    """Run it in this thread, and leave no connection behind."""
    try:
        return runner()
    finally:
        connection.close()


def _hand_over(future: Future[T], holder: Future[T]) -> None:
    error = future.exception(PATIENCE_S)
    if error:
        holder.set_exception(error)
    else:
        holder.set_result(future.result())
