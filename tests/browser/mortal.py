"""A console of its own process, which can be killed: a thread's connections outlive its server."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from django.conf import settings
from django.db import connection

from tests.scenarios.workers import wait_for


@dataclass(frozen=True)
class MortalServer:
    url: str
    process: subprocess.Popen[bytes]

    def die(self) -> None:
        """All of it, at once, without a farewell."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def mortal_server() -> Iterator[MortalServer]:
    """The console on the test's database."""
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port: int = reserved.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "manage.py", "runserver", "--noreload", f"127.0.0.1:{port}"],
        cwd=settings.BASE_DIR,
        env=os.environ | {"DATABASE_URL": _database_url(), "DEBUG": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    server = MortalServer(f"http://127.0.0.1:{port}", process)
    try:
        wait_for(lambda: _answers(port))
        yield server
    finally:
        server.die()


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def _database_url() -> str:
    """The server of the settings, the database of the test."""
    parts = urlsplit(os.environ["DATABASE_URL"])
    return urlunsplit(parts._replace(path=f"/{connection.settings_dict['NAME']}"))
