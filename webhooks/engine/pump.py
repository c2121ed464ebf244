"""One a worker process: claims deliveries for free threads, sends them, records what came.

Three kinds of thread. The pump claims, whenever it is woken and threads are free. Sender threads post;
they never touch the database. The recorder writes results in batches. A slot is free again only when
its result is recorded, so a database that is away stops claims instead of filling memory.

Everything starts on first use, that is after the worker process was forked.
"""

from __future__ import annotations

import functools
import logging
import os
import queue
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import util

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from psycopg.errors import IdleInTransactionSessionTimeout

from webhooks import endpoints
from webhooks.engine import attempts, claims, recorder
from webhooks.engine.claims import Claimed
from webhooks.engine.recorder import Outcome
from webhooks.engine.sender import Sender, SenderConfig

logger = logging.getLogger(__name__)

# A result waits this long for company: long enough to share a transaction, too short to be seen. It
# does not wait where no other can come, because nothing else is on the wire.
GATHER_S = 0.03
BATCH = 100
# One in so many threads is kept for endpoints with nothing in flight, so that slow receivers, however
# many of their deliveries are due, hold up nobody else's first.
RESERVED = 4
# Without being woken the pump looks for itself this often: a pool whose queue is frozen still delivers
# until its watch has started it anew.
LOOK_S = 1.0
# Between tries while the database is away.
DATABASE_RETRY_S = 0.5


class Slots:
    """How many attempts the process may still take on."""

    def __init__(self, total: int) -> None:
        self._total = self._free = total
        self._lock = threading.Lock()

    @property
    def free(self) -> int:
        return self._free

    @property
    def taken(self) -> int:
        return self._total - self._free

    def take(self, count: int) -> None:
        with self._lock:
            self._free -= count

    def give_back(self, count: int) -> None:
        self.take(-count)


class Pump:
    """Claims, sends and records for one process, until it is stopped."""

    def __init__(self, sender: Sender, threads: int) -> None:
        self._sender = sender
        self._slots = Slots(threads)
        self._reserve = threads // RESERVED
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._results: queue.SimpleQueue[Outcome | None] = queue.SimpleQueue()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="sender")
        self._claimer = threading.Thread(target=self._claim_forever, name="pump", daemon=True)
        self._recorder = threading.Thread(target=self._record_forever, name="recorder", daemon=True)
        self._worker = f"{socket.gethostname()}:{os.getpid()}"[-100:]

    def start(self) -> None:
        self._claimer.start()
        self._recorder.start()

    def wake(self) -> None:
        """Something is due, or a slot became free: look for work."""
        self._woken.set()

    def stop(self) -> None:
        """Claim no more; return when everything on the wire has ended and is recorded."""
        self._stopping.set()
        self._woken.set()
        self._claimer.join()
        self._pool.shutdown(wait=True)
        self._results.put(None)
        self._recorder.join()
        self._sender.close()

    def _claim_forever(self) -> None:
        while not self._stopping.is_set():
            self._woken.wait(LOOK_S)
            self._woken.clear()
            try:
                self._claim_what_fits()
            except Exception:
                # Whatever was claimed and not sent comes back when its lease runs out.
                logger.exception("claiming failed; trying again")
                connection.close()
                self._stopping.wait(DATABASE_RETRY_S)
                self._woken.set()
        connection.close()

    def _claim_what_fits(self) -> None:
        """One claim takes all that there is room for; a slot that frees up wakes us again."""
        if self._stopping.is_set() or not (room := self._slots.free):
            return
        for claimed in claims.claim(room, self._worker, self._reserve):
            self._slots.take(1)
            self._pool.submit(self._send, claimed)

    def _send(self, claimed: Claimed) -> None:
        self._results.put(attempts.make(self._sender, claimed))

    def _record_forever(self) -> None:
        while (batch := self._gather()) is not None:
            self._record(batch)
            self._slots.give_back(len(batch))
            self.wake()
        connection.close()

    def _gather(self) -> list[Outcome] | None:
        """The next batch of results; None when there will be no more."""
        first = self._results.get()
        if first is None:
            return None
        batch = [first]
        deadline = time.monotonic() + GATHER_S
        while len(batch) < self._worth_waiting_for() and (left := deadline - time.monotonic()) > 0:
            try:
                following = self._results.get(timeout=left)
            except queue.Empty:
                break
            if following is None:
                self._results.put(None)
                break
            batch.append(following)
        return batch

    def _worth_waiting_for(self) -> int:
        """A whole batch, or whatever this process has under way."""
        return min(BATCH, self._slots.taken)

    def _record(self, batch: list[Outcome]) -> None:
        """Record a batch, however long the database is away: it is one transaction, so repeating it
        changes nothing twice. What misses its lease was closed as lost, and the fence drops it.

        A result that the database refuses for what it holds must not hold up the others: then each is
        recorded alone, and the refused one is left to its lease.
        """
        while True:
            try:
                recorder.record(batch)
                return
            except Exception as fault:
                if _database_is_away(fault):
                    logger.warning(
                        "the database is away; %d results wait", len(batch), exc_info=True
                    )
                    connection.close()
                    time.sleep(DATABASE_RETRY_S)
                    continue
                logger.exception("a batch of %d results was refused", len(batch))
                connection.close()
                if len(batch) > 1:
                    for outcome in batch:
                        self._record([outcome])
                return


def _database_is_away(fault: Exception) -> bool:
    """Whether it refuses everybody, or has cut this connection: no fault of what was to be recorded."""
    if isinstance(fault, (OperationalError, InterfaceError)):
        return True
    # This process was suspended in the middle of a transaction. For psycopg that is an InternalError.
    return isinstance(fault.__cause__, IdleInTransactionSessionTimeout)


@functools.cache
def pump() -> Pump:
    """This process's pump, started on first use and drained when the process ends."""
    config = SenderConfig(
        deadline_s=settings.ATTEMPT_DEADLINE_S,
        addresses=endpoints.address_policy(),
        ca_bundle=settings.ENDPOINT_CA_BUNDLE or None,
    )
    running = Pump(Sender(config), settings.SENDER_THREADS)
    running.start()
    # A worker is a multiprocessing child: these have finalizers instead of atexit.
    util.Finalize(running, running.stop, exitpriority=10)
    return running
