"""Commands dispatched over the API, and how long until the receiver sees the first byte of each."""

from __future__ import annotations

import contextlib
import http.client
import json
import random
import socket
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from tests.benchmarks import fill
from tests.benchmarks.figures import BenchmarkFailed
from tests.benchmarks.reception import HOST
from tests.benchmarks.scene import Target
from tests.benchmarks.stage import Arena, Process, Stage, wait_until
from tests.plain_sql import Connection

START_TIMEOUT_S = 60.0
# The longest that a dispatch may take to arrive, before it counts as lost: a whole attempt at a dead
# endpoint, twice.
ARRIVAL_TIMEOUT_S = 20.0

# Dispatches before anything counts, each on a connection of its own.
WARM_UP = 30

COMMANDS = "SELECT command::text FROM bench_row WHERE batch = %s ORDER BY n"

MESSAGES = """
SELECT c.id::text, 'msg_' || replace(d.event_id::text, '-', '')
  FROM bench_row r JOIN commands_command c ON c.id = r.command
  JOIN webhooks_delivery d ON d.id = c.delivery_id
 WHERE r.batch = %s
"""


@dataclass(frozen=True)
class Dispatched:
    """One call of the API, in Unix time, and the first byte that came of it."""

    called: float
    returned: float
    arrived: float

    @property
    def after_call_ms(self) -> float:
        return (self.arrived - self.called) * 1000

    @property
    def after_return_ms(self) -> float:
        """Less than nothing when the delivery overtook the answer of the API."""
        return (self.arrived - self.returned) * 1000


class Api:
    """A client of the console's API, on one connection."""

    def __init__(self, port: int, key: str) -> None:
        self._connection = http.client.HTTPConnection(HOST, port, timeout=30)
        self._headers = {"x-api-key": key, "content-type": "application/json"}

    def is_up(self) -> bool:
        try:
            self._connection.request("GET", "/healthz")
            answer = self._connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return False
        return answer.status == HTTPStatus.OK

    def hang_up(self) -> None:
        """The next call opens a connection: the web server closes one that is idle for 2 s."""
        self._connection.close()

    def dispatch(self, command: str) -> tuple[float, float]:
        """When it was called and when it returned."""
        body = json.dumps({"commandId": command, "ackTimeoutSeconds": 3600})
        called = time.time()
        self._connection.request("POST", "/api/commands/dispatch", body, self._headers)
        answer = self._connection.getresponse()
        text = answer.read()
        returned = time.time()
        if answer.status != HTTPStatus.ACCEPTED:
            raise BenchmarkFailed(f"A dispatch was refused: {text.decode(errors='replace')}")
        return called, returned


@contextlib.contextmanager
def api_of(stage: Stage, arena: Arena) -> Iterator[Api]:
    """The web server of this arena, started for the block, each of its processes warm."""
    port = _free_port()
    with stage.web(arena, port) as server:
        api = Api(port, stage.scene.api_key)
        wait_until(lambda: _is_up(server, api), START_TIMEOUT_S, "the web server answers")
        batch = fill.logged(arena.connection, arena.scene, arena.scene.healthy, WARM_UP)
        for command in _commands(arena, batch):
            api.hang_up()  # the next connection may go to another process
            api.dispatch(command)
        yield api


def dispatch(
    api: Api, arena: Arena, targets: Sequence[Target], count: int, per_second: float
) -> list[Dispatched]:
    """Dispatch that many commands at that pace, and wait until all of them have arrived.

    The gaps are random, so that no rhythm of the console's own meets every one of them.
    """
    batch = fill.logged(arena.connection, arena.scene, targets, count)
    times = {}
    api.hang_up()
    began, gap = time.monotonic(), 1 / per_second
    for turn, command in enumerate(_commands(arena, batch)):
        pause = began + (turn + random.random()) * gap - time.monotonic()
        time.sleep(max(pause, 0))
        times[command] = api.dispatch(command)
    return _arrived(arena, batch, times)


def _commands(arena: Arena, batch: fill.Batch) -> list[str]:
    return [command for (command,) in arena.connection.execute(COMMANDS, [batch.number])]


def _arrived(
    arena: Arena, batch: fill.Batch, times: dict[str, tuple[float, float]]
) -> list[Dispatched]:
    messages = _messages(arena.connection, batch)
    wait_until(
        lambda: messages.keys() <= arena.receiver.first_bytes().keys(),
        ARRIVAL_TIMEOUT_S,
        "every dispatch arrived",
    )
    arrivals = arena.receiver.first_bytes()
    return [Dispatched(*times[command], arrivals[message]) for message, command in messages.items()]


def _messages(sql: Connection, batch: fill.Batch) -> dict[str, str]:
    return {message: command for command, message in sql.execute(MESSAGES, [batch.number])}


def _is_up(server: Process, api: Api) -> bool:
    server.check()
    return api.is_up()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
    return port
