"""The integrators: four receivers on one port, and a log of every POST, byte for byte.

What a receiver does with a request follows from the number ``n`` in the body and from the attempt, so
that no endpoint fails often enough in a row to be disabled. At the end ``be_kind`` lets all answer 200.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.chaos.loop import LoopThread

HOST = "127.0.0.1"
HEALTHY_S = 0.003
# Long enough to get many attempts on the wire, well within an attempt's ten seconds.
SLOW_S = 3.0
# Longer than any sender waits.
HANG_S = 60.0

_NUMBER = re.compile(rb'"n":(\d+)')


@dataclass(frozen=True)
class Post:
    """A request that arrived in full."""

    message_id: str
    attempt: int
    body: bytes

    @property
    def n(self) -> int:
        found = _NUMBER.search(self.body)
        return int(found[1]) if found else 0


class Receivers:
    """``/healthy`` answers in 3 ms, ``/flaky`` 503 at first, ``/hanging`` often never, ``/slow`` late."""

    def __init__(self, loop: LoopThread) -> None:
        self.posts: list[Post] = []
        self._kind = False
        self._behaviours: dict[str, Callable[[Post], Awaitable[int]]] = {
            "healthy": self._healthy,
            "flaky": self._flaky,
            "hanging": self._hanging,
            "slow": self._slow,
        }
        self._server = loop.call(self._listen())
        self.port: int = self._server.sockets[0].getsockname()[1]

    def url(self, name: str) -> str:
        return f"http://{HOST}:{self.port}/{name}"

    def be_kind(self) -> None:
        """Answer 200 to everything from now on."""
        self._kind = True

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, HOST, 0, backlog=512)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        gone = (OSError, asyncio.IncompleteReadError, asyncio.CancelledError)
        with contextlib.suppress(*gone):
            while True:
                name, post = await _read(reader)
                self.posts.append(post)
                status = 200 if self._kind else await self._behaviours[name](post)
                writer.write(b"HTTP/1.1 %d Scripted\r\nContent-Length: 0\r\n\r\n" % status)
                await writer.drain()
        writer.close()

    async def _healthy(self, post: Post) -> int:
        await asyncio.sleep(HEALTHY_S)
        return 200

    async def _flaky(self, post: Post) -> int:
        """Half are taken at once, the others at the second or third attempt."""
        await asyncio.sleep(HEALTHY_S)
        return 503 if post.attempt <= (0, 1, 0, 2)[post.n % 4] else 200

    async def _hanging(self, post: Post) -> int:
        """Half are answered at once, or the endpoint would be disabled; a quarter never is."""
        if post.attempt <= (3, 0, 1, 0)[post.n % 4]:
            await asyncio.sleep(HANG_S)
        return 200

    async def _slow(self, post: Post) -> int:
        await asyncio.sleep(SLOW_S)
        return 200


async def _read(reader: asyncio.StreamReader) -> tuple[str, Post]:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in lines if line)
    body = await reader.readexactly(int(headers["content-length"]))
    post = Post(headers["webhook-id"], int(headers["x-webhook-attempt"]), body)
    return first.split(" ")[1].strip("/"), post
