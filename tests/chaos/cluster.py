"""``manage.py cluster`` under a supervisor that starts it again whenever it ends, as in production."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path

from django.conf import settings

from tests.chaos.census import Census, Kind, marked

RESTART_PAUSE_S = 0.5
# Ten seconds for what is on the wire, then the cluster ends what is left by force.
STOP_S = 20.0


class Cluster:
    """The workers, reaching PostgreSQL through the relay."""

    def __init__(self, database_url: str, log: Path) -> None:
        self.log = log
        self.census = Census(settings.DELIVERY_WORKERS)
        self._marker = f"CHAOS_RUN={uuid.uuid4().hex}"
        name, _, value = self._marker.partition("=")
        self._environment = {**os.environ, "DATABASE_URL": database_url, name: value}
        self._stopping = threading.Event()
        self._process = self._start()
        self._supervisor = threading.Thread(target=self._supervise, daemon=True)
        self._supervisor.start()

    @property
    def watch(self) -> int:
        """The process id of ``manage.py cluster``."""
        return self._process.pid

    def pids(self, kind: Kind) -> list[int]:
        return self.census.look(self.watch)[kind]

    def is_whole(self) -> bool:
        return self.census.is_whole(self.watch)

    def terminate(self) -> float:
        """Ask the cluster to stop; how long it took. The supervisor starts it again."""
        process, asked = self._process, time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.wait(STOP_S)
        return time.monotonic() - asked

    def stop(self) -> list[int]:
        """Stop for good; processes that are left, which there should be none of."""
        self._stopping.set()
        self._supervisor.join()
        if self._process.poll() is None:
            self.terminate()
        return self._left_behind()

    def end_by_force(self) -> None:
        """Kill whatever this run has started and is still there."""
        self._stopping.set()
        for pid in marked(self._marker):
            os.kill(pid, signal.SIGKILL)

    def _left_behind(self) -> list[int]:
        """A pool whose watch was killed may still let its last attempts finish."""
        deadline = time.monotonic() + STOP_S
        while (left := marked(self._marker)) and time.monotonic() < deadline:
            time.sleep(0.2)
        return left

    def _start(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as output:
            return subprocess.Popen(
                [sys.executable, str(settings.BASE_DIR / "manage.py"), "cluster"],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def _supervise(self) -> None:
        while not self._stopping.wait(0.05):
            if self._process.poll() is not None and not self._stopping.wait(RESTART_PAUSE_S):
                self._process = self._start()
