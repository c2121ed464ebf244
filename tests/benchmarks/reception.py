"""The receiver's process, from the outside."""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.benchmarks.receiver import Arrival

HOST = "127.0.0.1"


@dataclass
class Reception:
    """Where deliveries arrive."""

    process: subprocess.Popen[str]
    port: int

    @classmethod
    @contextlib.contextmanager
    def open(cls) -> Iterator[Reception]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.receiver"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            assert process.stdout
            yield cls(process, int(process.stdout.readline()))
        finally:
            process.kill()
            process.communicate()

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def arrivals(self) -> list[Arrival]:
        """(webhook-id, attempt, Unix time of the first byte), in the order of arrival."""
        return [(name, number, at) for name, number, at in self._ask("/-/log")]

    def first_bytes(self) -> dict[str, float]:
        """When each message arrived for the first time."""
        return {name: at for name, _, at in reversed(self.arrivals())}

    def reset(self) -> None:
        self._ask("/-/reset")

    def release(self) -> None:
        """Cut off the requests that hang."""
        self._ask("/-/release")

    def _ask(self, path: str) -> Any:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=30)
        try:
            connection.request("GET", path)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()
