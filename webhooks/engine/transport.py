"""Sockets that end at a deadline, and the connections made of them.

A timeout of a socket bounds the gap between two reads, not the exchange: a receiver that drips a
byte a second, or repeats `100 Continue`, never meets it. So each call of these sockets waits only
for the time that is left until the attempt's deadline, and no watchdog thread is needed.

Outbound connections are made here and nowhere else, to addresses and never to names.
"""

import contextlib
import re
import select
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from http.client import HTTPResponse, RemoteDisconnected, parse_headers
from typing import Any, NamedTuple

from webhooks.engine.failures import HeadTooLong

# Several times what common servers send, little enough that every sender thread may meet it, and
# an end for a flood of interim answers that would burn CPU until the deadline.
MAX_HEAD_BYTES = 256 * 1024

# After the headers only time and the reader's own cap count.
UNLIMITED = 1 << 62

_ILLEGAL_IN_HEADER = re.compile(r"[\r\n\0]")


class _DeadlineCalls(socket.socket):
    """Socket calls that wait for no longer than the attempt has left. Mixed into both kinds."""

    deadline: float | None = None  # time.monotonic()
    allowance: int = UNLIMITED  # bytes that may still be received

    def arm(self, at_most: float = 3600.0) -> None:
        """Bound the next call. Without a deadline the socket keeps its own timeout."""
        if self.deadline is None:
            return
        left = min(self.deadline - time.monotonic(), at_most)
        if left <= 0:
            raise TimeoutError("the deadline has passed")
        self.settimeout(left)

    def recv_into(self, *args: Any, **kwargs: Any) -> int:
        if self.allowance <= 0:
            raise HeadTooLong
        self.arm()
        received = super().recv_into(*args, **kwargs)
        self.allowance -= received
        return received

    def send(self, *args: Any, **kwargs: Any) -> int:
        self.arm()
        return super().send(*args, **kwargs)

    def sendall(self, *args: Any, **kwargs: Any) -> None:
        self.arm()
        super().sendall(*args, **kwargs)


class DeadlineSocket(_DeadlineCalls):
    """A TCP socket that ends at its deadline."""


class DeadlineTLSSocket(_DeadlineCalls, ssl.SSLSocket):
    """A TLS socket that ends at its deadline. OpenSSL bounds each call as a whole, so a record
    that drips is no way around it."""

    def do_handshake(self, block: bool = False) -> None:
        self.arm()
        super().do_handshake(block)


def tls_context(ca_bundle: str) -> ssl.SSLContext:
    """Verification by this bundle alone: no variable of the environment changes it.

    Raises OSError when the bundle cannot be read, which is for the start of the process to show.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.hostname_checks_common_name = False
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_verify_locations(cafile=ca_bundle)
    except OSError as error:
        raise OSError(f"The CA bundle {ca_bundle} cannot be read: {error}") from error
    context.sslsocket_class = DeadlineTLSSocket
    return context


def open_socket(address: str, port: int, at_most: float, deadline: float) -> DeadlineSocket:
    """Connect to an address that was checked, within `at_most` seconds and the deadline."""
    sock = DeadlineSocket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.deadline = deadline
        sock.arm(at_most)
        sock.connect((address, port))
    except BaseException:
        sock.close()
        raise
    return sock


def start_tls(sock: DeadlineSocket, context: ssl.SSLContext, server_name: str) -> DeadlineTLSSocket:
    """Take the socket over and make it TLS with the server of this name."""
    try:
        # The handshake waits until the deadline is in place, which the wrapping cannot carry over.
        tls = context.wrap_socket(sock, server_hostname=server_name, do_handshake_on_connect=False)
        assert isinstance(tls, DeadlineTLSSocket)
    except BaseException:
        sock.close()
        raise
    try:
        tls.deadline = sock.deadline
        tls.do_handshake()
    except BaseException:
        tls.close()
        raise
    return tls


class ConnectionKey(NamedTuple):
    """What a connection may be reused for: the same server at the same checked address."""

    scheme: str
    address: str
    port: int
    server_name: str


class _Head:
    """The lines of an answer's head. http.client takes the end of the connection for the end of the
    headers; then a receiver that died in the middle of its answer would have taken the delivery.
    """

    def __init__(self, fp: Any) -> None:
        self._fp = fp
        self._begun = False

    def readline(self, limit: int) -> bytes:
        line: bytes = self._fp.readline(limit)
        self._begun = self._begun or line.startswith(b"HTTP/")
        if self._begun and len(line) < limit and not line.endswith(b"\n"):
            raise RemoteDisconnected("closed before the headers were complete")
        return line

    def close(self) -> None:
        self._fp.close()


class _FinalResponse(HTTPResponse):
    """http.client skips `100 Continue` alone; 102 and 103 are no verdicts either."""

    def begin(self) -> None:
        whole = self.fp
        self.fp = _Head(whole)  # type: ignore[assignment]
        try:
            super().begin()
        finally:
            if self.fp:  # http.client lets go of what is no HTTP
                self.fp = whole

    def _read_status(self) -> tuple[str, int, str]:
        while True:
            version, status, reason = super()._read_status()  # type: ignore[misc]
            if not 101 < status < 200:
                return version, status, reason
            parse_headers(self.fp)


class Connection:
    """One socket, for one exchange after the other."""

    def __init__(self, key: ConnectionKey, sock: _DeadlineCalls) -> None:
        self.key = key
        self.sock = sock
        self.idle_since = 0.0

    def begin(self, deadline: float) -> None:
        self.sock.deadline = deadline
        self.sock.allowance = MAX_HEAD_BYTES

    def begin_body(self, deadline: float) -> None:
        self.sock.deadline = deadline
        self.sock.allowance = UNLIMITED

    def post(self, target: str, headers: Mapping[str, str], body: bytes) -> None:
        """Send the request in one piece, so that a small one is one packet.

        A receiver may answer and close before it has read everything (413, 401): then sending
        fails, and whoever reads the answer learns whether there is one.
        """
        lines = [f"POST {target} HTTP/1.1"]
        for name, value in headers.items():
            if _ILLEGAL_IN_HEADER.search(value):
                raise ValueError(f"The header {name} has a line break in its value.")
            lines.append(f"{name}: {value}")
        head = "\r\n".join([*lines, "", ""]).encode()
        with contextlib.suppress(ConnectionResetError, BrokenPipeError, ssl.SSLEOFError):
            self.sock.sendall(head + body)

    def read_head(self) -> HTTPResponse:
        """The status line and headers of the final answer, its body still to be read."""
        response = _FinalResponse(self.sock, method="POST")
        try:
            response.begin()
        except BaseException:
            response.close()
            raise
        return response

    def is_silent(self) -> bool:
        """Nothing has arrived since the last answer: neither the end nor an answer to nothing."""
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        self.sock.close()


class IdleConnections:
    """Connections that wait for their next exchange. Thread-safe.

    An exchange is never repeated, so a connection that the receiver is about to close would cost
    an attempt. Hence a narrow window: not sooner than `settle_s`, in which a receiver that closes
    after its answer without having said so has done it, and not later than `idle_s`, before any
    common server's own limit. Where a kept connection was closed all the same, none is kept for
    DISTRUST_SECONDS.
    """

    DISTRUST_SECONDS = 60.0

    def __init__(self, settle_s: float, idle_s: float, capacity: int) -> None:
        self._settle_s = settle_s
        self._idle_s = idle_s
        self._capacity = capacity
        self._lock = threading.Lock()
        self._waiting: list[Connection] = []  # the longest idle first
        self._distrusted: dict[ConnectionKey, float] = {}

    def take(self, key: ConnectionKey) -> Connection | None:
        """The connection to this server that has waited longest and still stands."""
        while connection := self._pop(key):
            if connection.is_silent():
                return connection
            connection.close()
        return None

    def _pop(self, key: ConnectionKey) -> Connection | None:
        now = time.monotonic()
        with self._lock:
            for position, connection in enumerate(self._waiting):
                if connection.idle_since > now - self._settle_s:
                    return None
                if connection.key == key and connection.idle_since > now - self._idle_s:
                    return self._waiting.pop(position)
        return None

    def put(self, connection: Connection) -> None:
        now = connection.idle_since = time.monotonic()
        with self._lock:
            surplus = self._expired(now)
            if now < self._distrusted.get(connection.key, 0.0) or not self._capacity:
                surplus.append(connection)
            else:
                self._waiting.append(connection)
        for each in surplus:
            each.close()

    def _expired(self, now: float) -> list[Connection]:
        """Take out what is too old or too many, leaving room for one."""
        waiting = self._waiting
        keep_from = max(0, len(waiting) + 1 - self._capacity)
        while keep_from < len(waiting) and waiting[keep_from].idle_since <= now - self._idle_s:
            keep_from += 1
        expired, self._waiting = waiting[:keep_from], waiting[keep_from:]
        return expired

    def distrust(self, key: ConnectionKey) -> None:
        now = time.monotonic()
        with self._lock:
            self._distrusted = {k: until for k, until in self._distrusted.items() if until > now}
            self._distrusted[key] = now + self.DISTRUST_SECONDS

    def close(self) -> None:
        """Close what waits, and keep nothing from now on."""
        with self._lock:
            self._capacity = 0
            waiting, self._waiting = self._waiting, []
        for connection in waiting:
            connection.close()
