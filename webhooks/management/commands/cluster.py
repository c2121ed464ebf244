"""``manage.py cluster``: the delivery workers, watched from outside.

django-q2 replaces a worker that dies, but a worker killed while it holds the shared queue's lock
freezes the whole pool, and a killed parent leaves its children behind. So django-q2 runs as a child in
a session of its own, and this process compares what it sees with what it must see: the child alive,
and a heartbeat that went through pusher, queue and worker. When either is missing, the whole session is
ended and started anew; what was on the wire comes back when its lease runs out.
"""

from __future__ import annotations

import contextlib
import ctypes
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
from django.core.management.base import BaseCommand
from django.db import Error, connection

logger = logging.getLogger(__name__)

# How often the child and its heartbeat are looked at.
LOOK_S = 1.0
# A heartbeat comes every second. A task may keep every worker for some seconds; fifteen without one is
# a frozen pool, and leaves most of a minute to restart and to run out the leases.
FROZEN_AFTER_S = 15.0
# Until the first heartbeat: starting Python, Django and the pool on a busy machine.
START_GRACE_S = 30.0
# An attempt on the wire ends within its deadline; then it is recorded.
STOP_GRACE_S = settings.ATTEMPT_DEADLINE_S + 1.5
# Between restarts of a pool that dies at once.
RESTART_PAUSE_S = 1.0

PR_SET_PDEATHSIG = 1

AGE = """
SELECT extract(epoch FROM clock_timestamp() - beat_at)::float8
  FROM webhooks_heartbeat WHERE cluster = %s
"""


class Command(BaseCommand):
    help = "Run the delivery workers, and start them again whenever they die or freeze."

    def handle(self, *args: Any, **options: Any) -> None:
        Watch().run()


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
        self._process = subprocess.Popen(
            [sys.executable, str(settings.BASE_DIR / "manage.py"), "qcluster"],
            env={**os.environ, "CLUSTER_ID": self.name},
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
        logger.info("workers started (pid %d)", self._process.pid)

    def trouble(self) -> str | None:
        """What is wrong with the pool, or None. A database that is away is no fault of the pool's."""
        if self._process.poll() is not None:
            return f"their parent ended with code {self._process.returncode}"
        try:
            silence = self._silence()
        except Error:
            connection.close()
            self._started = time.monotonic()
            return None
        return None if silence is None else f"no heartbeat for {silence:.0f} s"

    def _silence(self) -> float | None:
        """Seconds without a heartbeat, once they are too many."""
        with connection.cursor() as cursor:
            cursor.execute(AGE, [self.name])
            row = cursor.fetchone()
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


def _end_with_parent() -> None:
    """Ask Linux to stop the pool when this process is killed: nobody would watch it any more."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
