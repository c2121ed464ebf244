"""``manage.py cluster``: the delivery workers, watched from outside.

django-q2 replaces a worker that dies, but a worker killed while it holds the shared queue's lock
freezes the whole pool, and a killed parent leaves its children behind. So django-q2 runs as a child in
a session of its own (``manage.py pool``), and this process compares what it sees with what it must see:
the child alive, a heartbeat that went through all of its parts, and the pulse of the sentinel that
replaces the dead. When one is missing, the whole session is ended and started anew; what was on the wire
comes back when its lease runs out. When this process dies instead, the pool ends by itself.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import Error, connection

from webhooks import secrets
from webhooks.engine import heartbeat
from webhooks.management.commands.pool import STOP_GRACE_S
from webhooks.models import EndpointSecret

logger = logging.getLogger(__name__)

# How often the child and its heartbeat are looked at.
LOOK_S = 1.0
# A heartbeat comes every second. A task may keep every worker for some seconds; fifteen without one is
# a frozen pool, and leaves most of a minute to restart and to run out the leases.
FROZEN_AFTER_S = 15.0
# The pulse comes twice a second, unless the sentinel waits for a lock that a dead worker holds.
STUCK_AFTER_S = 10.0
# Until the first pulse: Python and Django start on a machine that may have a hundred other things to do.
# Then until the first heartbeat. Too short, and a pool on a slow machine would never get to its work.
BOOT_GRACE_S = 60.0
START_GRACE_S = 30.0
# A look that took longer than this says more about the database than about the pool.
SLOW_LOOK_S = 3.0
# Between restarts of a pool that dies at once.
RESTART_PAUSE_S = 1.0

AGE = """
SELECT extract(epoch FROM clock_timestamp() - beat_at)::float8
  FROM webhooks_heartbeat WHERE cluster = %s
"""


class Command(BaseCommand):
    help = "Run the delivery workers, and start them again whenever they die or freeze."

    def handle(self, *args: Any, **options: Any) -> None:
        _read_a_secret()
        Watch().run()


def _read_a_secret() -> None:
    """Refuse to work on a host that has another key than the secrets were encrypted with: it would lose
    every attempt that it claims.
    """
    try:
        newest = EndpointSecret.objects.order_by("-pk").first()
        if newest:
            secrets.decrypt(newest.ciphertext)
    except secrets.SecretUnreadable:
        raise CommandError(
            "The endpoints' secrets cannot be read with the keys of this host: give every host the same"
            " SECRETS_ENCRYPTION_KEYS."
        ) from None


class Watch:
    """Keeps one pool of workers alive until it is told to stop."""

    def __init__(self) -> None:
        self._stopping = threading.Event()

    def run(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop)
        while not self._stopping.is_set():
            self._run_one_pool()
            self._stopping.wait(RESTART_PAUSE_S)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping.set()

    def _run_one_pool(self) -> None:
        pool = Pool()
        while not self._stopping.wait(LOOK_S):
            if (reason := pool.trouble()) is not None:
                logger.error("the workers are started again: %s", reason)
                pool.kill()
                return
        pool.stop()


class Pool:
    """One django-q2 cluster with all of its processes."""

    def __init__(self) -> None:
        self.name = uuid.uuid4().hex
        self._started = time.monotonic()
        self._pulse, pulse = os.pipe()
        os.set_blocking(self._pulse, False)
        os.set_blocking(pulse, False)
        self._pulse_at: float | None = None
        self._process = subprocess.Popen(
            [sys.executable, str(settings.BASE_DIR / "manage.py"), "pool"],
            env={
                **os.environ,
                heartbeat.CLUSTER_VARIABLE: self.name,
                heartbeat.PULSE_VARIABLE: str(pulse),
            },
            stdin=subprocess.PIPE,  # never written to: it closes when this process ends
            pass_fds=[pulse],
            start_new_session=True,
        )
        os.close(pulse)
        logger.info("workers started (pid %d)", self._process.pid)

    def trouble(self) -> str | None:
        """What is wrong with the pool, or None."""
        if self._process.poll() is not None:
            return f"their parent ended with code {self._process.returncode}"
        if (silence := self._pulseless()) is not None:
            return f"their sentinel is stuck for {silence:.0f} s"
        if self._pulse_at is not None and (silence := self._silence()) is not None:
            return f"no heartbeat for {silence:.0f} s"
        return None

    def _pulseless(self) -> float | None:
        """Seconds without a pulse, once they are too many."""
        now = time.monotonic()
        with contextlib.suppress(BlockingIOError):
            while os.read(self._pulse, 4096):
                if self._pulse_at is None:
                    self._started = now
                self._pulse_at = now
        limit = BOOT_GRACE_S if self._pulse_at is None else STUCK_AFTER_S
        silence = now - (self._pulse_at or self._started)
        return silence if silence > limit else None

    def _silence(self) -> float | None:
        """Seconds without a heartbeat, once they are too many. A database that is away, or hardly there,
        is no fault of the pool's: once it is back, the pool has time to show that it works.
        """
        asked = time.monotonic()
        try:
            with connection.cursor() as cursor:
                cursor.execute(AGE, [self.name])
                row = cursor.fetchone()
        except Error:
            connection.close()
            self._started = time.monotonic()
            return None
        if time.monotonic() - asked > SLOW_LOOK_S:
            self._started = time.monotonic()
        since_start = time.monotonic() - self._started
        age = min(row[0], since_start) if row else since_start
        limit = FROZEN_AFTER_S if row else START_GRACE_S
        return age if age > limit else None

    def stop(self) -> None:
        """Let what is on the wire finish, then end; whoever does not end in time is killed."""
        if self._process.poll() is None:
            self._process.terminate()
        try:
            self._process.wait(STOP_GRACE_S)
        except subprocess.TimeoutExpired:
            logger.error("the workers did not stop in time")
        self.kill()

    def kill(self) -> None:
        """End every process of the pool's session at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._pulse)
        assert self._process.stdin
        self._process.stdin.close()
