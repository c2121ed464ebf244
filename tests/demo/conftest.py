"""A console made up for the demo's tests, and the real receiver reporting to it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from socketserver import BaseServer
from typing import TypeVar

import pytest

from demo.acks import Reporter
from demo.receiver import ReceiverServer
from demo.reception import Reception
from demo.seeded import DemoFile
from tests.demo.parts import FakeConsole, Sender, write_demo_file

Server = TypeVar("Server", bound=BaseServer)


def serving(server: Server) -> Iterator[Server]:
    # Polls often, so that a test's end does not wait half a second for the server's.
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def console() -> Iterator[FakeConsole]:
    yield from serving(FakeConsole())


@pytest.fixture
def demo_path(tmp_path: Path) -> Path:
    path = tmp_path / "demo.json"
    write_demo_file(path)
    return path


@pytest.fixture
def receiver(console: FakeConsole, demo_path: Path) -> Iterator[ReceiverServer]:
    """One reporting thread, so that reports come in the order of the deliveries."""
    demo_file = DemoFile(demo_path)
    reporter = Reporter(console.url, demo_file, threads=1, delays=(0.0, 0.0, 0.0))
    yield from serving(ReceiverServer(0, Reception(demo_file), reporter))


@pytest.fixture
def sender(receiver: ReceiverServer) -> Sender:
    return Sender(receiver)
