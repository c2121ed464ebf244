"""The network between the workers and PostgreSQL: a relay on loopback that can break as networks do.

Three faults. *Drop*: every packet of the workers vanishes, and nobody is told: a socket filter
discards them in the kernel before TCP sees them, so the workers' system retransmits into nothing and
new connections find nobody. What was connected stays dead even afterwards, and the server never hears
of it, as when a gateway forgot the connection. *Stall*: all is acknowledged and nothing arrives, as when
the server's machine is frozen; later it goes on. *Sever*: every connection is reset.
"""

from __future__ import annotations

import asyncio
import ctypes
import re
import struct
import sys
from pathlib import Path
from typing import Protocol

from tests.chaos.loop import LoopThread

HOST = "127.0.0.1"
CHUNK = 65536

SO_ATTACH_FILTER = 26
SO_DETACH_FILTER = 27
# One instruction of the classic packet filter: "return 0", that is: keep nothing of the packet.
_NOTHING = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))
_DROP_ALL = struct.pack("HL", 1, ctypes.addressof(_NOTHING))

# What PostgreSQL says when it waits for the next statement of an open transaction.
IN_TRANSACTION = b"Z\x00\x00\x00\x05T"
# How a client names a statement that it has prepared: the name, then the text.
PREPARES = re.compile(rb"P.{4}([^\0]+)\0([^\0]+)\0", re.DOTALL)


class _Filterable(Protocol):
    def setsockopt(self, level: int, option: int, value: bytes, /) -> None: ...


class Link:
    """One connection of a worker, and ours to the server on its behalf."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.client = writer
        self.open = asyncio.Event()
        self.open.set()
        self._asked = b""
        self._texts: dict[bytes, bytes] = {}

    def ask(self, data: bytes) -> None:
        """Note what the client says, and what it has prepared."""
        self._asked = data
        self._texts |= {name + b"\0": text for name, text in PREPARES.findall(data)}

    def asked_for(self, what: bytes) -> bool:
        """Whether the last statement was one with this text, prepared or not."""
        prepared = (name for name, text in self._texts.items() if what in text)
        return what in self._asked or any(name in self._asked for name in prepared)


class Relay:
    """Forwards TCP on a free port to PostgreSQL's Unix socket."""

    def __init__(self, loop: LoopThread, socket: Path) -> None:
        self._loop = loop
        self._socket = socket
        self._links: set[Link] = set()
        self._stalled = False
        self._dropping = False
        self._trap: bytes | None = None
        self._server = loop.call(self._listen())
        self.port: int = self._server.sockets[0].getsockname()[1]

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, HOST, 0)

    # --- faults ---------------------------------------------------------------------------------

    def drop(self, when_asked: bytes, patience_s: float) -> None:
        """Lose all packets from now on; from the moment, if it comes, when a transaction that asked
        for ``when_asked`` got its answer and holds what it locked.
        """
        if sys.platform != "linux":
            raise NotImplementedError("only Linux has socket filters")
        self._loop.call(self._set_trap(when_asked, patience_s), patience_s + 30)

    def stall(self) -> None:
        self._loop.call(self._set_stalled(True))

    def sever(self) -> None:
        self._loop.call(self._sever())

    def mend(self) -> None:
        """Let new connections through, and stalled ones go on; dropped ones stay dead."""
        self._loop.call(self._mend())

    async def _set_trap(self, when_asked: bytes, patience_s: float) -> None:
        self._trap = when_asked
        deadline = asyncio.get_running_loop().time() + patience_s
        while not self._dropping:
            if asyncio.get_running_loop().time() > deadline:
                self._drop_now()
            await asyncio.sleep(0.01)

    def _drop_now(self) -> None:
        self._trap, self._dropping = None, True
        for link in self._links:
            link.open.clear()
            _discard_packets(link.client.get_extra_info("socket"))
        _discard_packets(self._server.sockets[0])

    async def _set_stalled(self, stalled: bool) -> None:
        self._stalled = stalled
        for link in self._links:
            link.open.clear() if stalled else link.open.set()

    async def _sever(self) -> None:
        for link in list(self._links):
            link.client.transport.abort()

    async def _mend(self) -> None:
        if self._dropping:
            self._dropping = False
            self._links.clear()
            listener: _Filterable = self._server.sockets[0]
            listener.setsockopt(1, SO_DETACH_FILTER, b"\0" * 4)
        await self._set_stalled(False)

    # --- forwarding -----------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = Link(writer)
        self._links.add(link)
        if self._stalled:
            link.open.clear()
        try:
            upstream, downstream = await asyncio.open_unix_connection(str(self._socket))
            try:
                await self._both_ways(link, reader, upstream, downstream)
            finally:
                downstream.close()
        except OSError:
            pass  # PostgreSQL is down, or one of the two has gone
        except asyncio.CancelledError:
            pass  # the end
        finally:
            self._links.discard(link)
            writer.close()

    async def _both_ways(
        self,
        link: Link,
        client: asyncio.StreamReader,
        server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
    ) -> None:
        """Forward until one of the two ends its side: the other is then closed as well."""
        ways = [
            asyncio.ensure_future(self._ask(link, client, to_server)),
            asyncio.ensure_future(self._answer(link, server)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _ask(
        self, link: Link, client: asyncio.StreamReader, server: asyncio.StreamWriter
    ) -> None:
        while data := await client.read(CHUNK):
            await link.open.wait()
            link.ask(data)
            server.write(data)
            await server.drain()

    async def _answer(self, link: Link, server: asyncio.StreamReader) -> None:
        while data := await server.read(CHUNK):
            if self._trap and data.endswith(IN_TRANSACTION) and link.asked_for(self._trap):
                self._drop_now()
            await link.open.wait()
            link.client.write(data)
            await link.client.drain()


def _discard_packets(sock: _Filterable) -> None:
    sock.setsockopt(1, SO_ATTACH_FILTER, _DROP_ALL)
