"""A real pool of workers on the test's own database, and ways to wait for what it does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit, urlunsplit

from django.conf import settings
from django.db import connection

from tests.receivers import Behaviour, ScriptedReceiver
from webhooks.models import Endpoint, Heartbeat

# Starting a pool on a busy machine, and waiting for what must come: a bound, not a measurement.
PATIENCE_S = 60.0
LOOK_S = 0.02


T = TypeVar("T")


def wait_for(what: Callable[[], T], patience_s: float = PATIENCE_S) -> T:
    """The first true value of ``what``, looked at again and again until it is there."""
    deadline = time.monotonic() + patience_s
    never = threading.Event()
    while not (value := what()):
        assert time.monotonic() < deadline, "what the test waits for did not happen"
        never.wait(LOOK_S)
    return value


@contextmanager
def receiving(endpoint: Endpoint, *script: Behaviour) -> Iterator[ScriptedReceiver]:
    """A receiver at the endpoint, which answers as the script says (the last one again and again)."""
    with ScriptedReceiver(*script) as receiver:
        Endpoint.objects.filter(pk=endpoint.pk).update(url=receiver.url)
        yield receiver


@dataclass
class Workers:
    """``manage.py cluster`` at work."""

    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    @contextmanager
    def at_work(cls, folder: Path) -> Iterator[Workers]:
        """Start the pool, wait for its first heartbeat, and stop it in the end."""
        log = folder / "cluster.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, str(settings.BASE_DIR / "manage.py"), "cluster"],
                env=_environment(),
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        workers = cls(process, log)
        try:
            wait_for(workers.beats)
            yield workers
        finally:
            workers.stop()

    def beats(self) -> int:
        """How many pools have shown a sign of life."""
        assert self.process.poll() is None, self.log.read_text()
        return Heartbeat.objects.count()

    def stop(self) -> int:
        """Ask the pool to stop and wait until it has; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    def pool_pid(self) -> int:
        """The parent of the pool's processes."""
        [pid] = _children(self.process.pid)
        return pid

    def pool_processes(self) -> list[int]:
        """Every process below the pool's parent: sentinel, workers, monitor, pusher."""
        [sentinel] = _children(self.pool_pid())
        return [sentinel, *_children(sentinel)]


def pid_of(worker: str) -> int:
    """The process behind an attempt's ``worker``, which reads ``host:pid``."""
    return int(worker.rpartition(":")[2])


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return sorted(int(child) for task in tasks for child in task.read_text().split())


def _environment() -> dict[str, str]:
    parts = urlsplit(os.environ["DATABASE_URL"])
    database = parts._replace(path="/" + str(connection.settings_dict["NAME"]))
    return {
        **os.environ,
        "DATABASE_URL": urlunsplit(database),
        "ENDPOINT_ALLOW_HTTP": "1",
        "ENDPOINT_ALLOWED_NETWORKS": "127.0.0.0/8",
    }
