"""The receiver of the benchmarks, in a process of its own: ``python -m tests.benchmarks.receiver``.

Lean, because it shares the machine with what is measured: no framework, keep-alive, one pass over the
head. It writes down the first byte's time of every delivery. The path says how it answers:

    /ok      200
    /flaky   503 to the first attempt of about every fifth message, else 200
    /hang    nothing, until it is told to let go
    /flood   200 with a gigabyte

``GET /-/log`` returns what arrived as [webhook-id, attempt, first byte's Unix time], ``/-/reset``
forgets it, ``/-/release`` cuts off what hangs. It listens on 127.0.0.1, prints its port, and ends when
its standard input does, so that it never outlives who started it.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time

CONTENT_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
MESSAGE = re.compile(rb"\r\nwebhook-id: *([^\r]+)", re.IGNORECASE)
ATTEMPT = re.compile(rb"\r\nx-webhook-attempt: *(\d+)", re.IGNORECASE)

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
UNAVAILABLE = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
GIGABYTE = 1 << 30
FLOOD_HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % GIGABYTE
FLOOD_PIECE = b"x" * 65536
# Message ids end in random hex digits: 3 of 16 fail once. So few, and spread so, never make the twenty
# failures in a row that disable an endpoint.
FAILING_DIGITS = b"048"

Arrival = tuple[str, int, float]


class Book:
    """What arrived, and which connections hang."""

    def __init__(self) -> None:
        self.arrivals: list[Arrival] = []
        self.hanging: list[asyncio.Transport] = []

    def release(self) -> None:
        for transport in self.hanging:
            transport.abort()
        self.hanging.clear()


class Visitor(asyncio.Protocol):
    """One connection."""

    transport: asyncio.Transport

    def __init__(self, book: Book) -> None:
        self._book = book
        self._data = b""
        self._first_byte = 0.0
        self._flood_left = 0
        self._paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if not self._data:
            self._first_byte = time.time()
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head = self._data[: end + 2]
            length = CONTENT_LENGTH.search(head)
            size = end + 4 + (int(length[1]) if length else 0)
            if len(self._data) < size:
                return
            self._data = self._data[size:]
            self._serve(head)

    def _serve(self, head: bytes) -> None:
        path = head.split(b" ", 2)[1]
        if path.startswith(b"/-/"):
            self._obey(path)
            return
        message, attempt = MESSAGE.search(head), ATTEMPT.search(head)
        name, number = (message[1] if message else b""), (int(attempt[1]) if attempt else 0)
        self._book.arrivals.append((name.decode(), number, self._first_byte))
        if path == b"/hang":
            self._book.hanging.append(self.transport)
        elif path == b"/flood":
            self._flood()
        elif path == b"/flaky" and number == 1 and name[-1:] in FAILING_DIGITS:
            self.transport.write(UNAVAILABLE)
        else:
            self.transport.write(OK)

    def _obey(self, path: bytes) -> None:
        answer: object = None
        if path == b"/-/log":
            answer = self._book.arrivals
        elif path == b"/-/reset":
            self._book.arrivals.clear()
        elif path == b"/-/release":
            self._book.release()
        body = json.dumps(answer).encode()
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    def _flood(self) -> None:
        self.transport.write(FLOOD_HEAD)
        self._flood_left = GIGABYTE
        self._pour()

    def _pour(self) -> None:
        """One piece at a time, so that the others are served in between."""
        if self._flood_left > 0 and not self._paused and not self.transport.is_closing():
            self.transport.write(FLOOD_PIECE)
            self._flood_left -= len(FLOOD_PIECE)
            asyncio.get_running_loop().call_soon(self._pour)

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._pour()


async def serve() -> None:
    loop, book = asyncio.get_running_loop(), Book()
    server = await loop.create_server(lambda: Visitor(book), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    ended = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), ended.set)
    await ended.wait()
    server.close()


if __name__ == "__main__":
    asyncio.run(serve())
