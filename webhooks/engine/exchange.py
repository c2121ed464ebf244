"""One attempt on the wire: check the addresses, connect to one of them, post, read the head.

The whole of it ends at one deadline, and every failure on the way becomes an AttemptFailed that says
where it happened.
"""

import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse, IncompleteRead

from webhooks.engine import failures
from webhooks.engine.failures import Place, wire_failure
from webhooks.engine.resolver import AddressBlocked, NameFailed, NameTimedOut, Resolver
from webhooks.engine.transport import (
    Connection,
    ConnectionKey,
    DeadlineSocket,
    IdleConnections,
    open_socket,
    start_tls,
)
from webhooks.rules.addresses import AddressPolicy, ParsedTarget
from webhooks.rules.verdicts import Phase

# A name with many addresses is judged by all of them, but an attempt has time to try a few.
MAX_ADDRESSES_TRIED = 4


@dataclass(frozen=True)
class SenderConfig:
    """How attempts are made. Times in seconds."""

    deadline_s: float = 10.0
    # glibc repeats an unanswered DNS query after 5 s: one lost datagram must not fail an attempt.
    resolve_s: float = 6.0
    excerpt_bytes: int = 4096
    # Bodies up to this size are read to their end, so that the connection can be reused.
    read_cap: int = 16384
    excerpt_grace_s: float = 0.25
    addresses: AddressPolicy = field(default_factory=AddressPolicy)
    ca_bundle: str | None = None  # None: the authorities that certifi ships
    user_agent: str = "command-console"
    idle_reuse_s: float = 0.5
    idle_settle_s: float = 0.02
    max_idle: int = 64


@dataclass(frozen=True)
class Wire:
    """What the attempts of one process share."""

    config: SenderConfig
    tls: ssl.SSLContext
    resolver: Resolver
    idle: IdleConnections


class Exchange:
    """One attempt on the wire. Stands where requests expects a connection pool."""

    def __init__(self, wire: Wire, target: ParsedTarget, deadline: float) -> None:
        self._wire = wire
        self._target = target
        self._deadline = deadline
        self._phase = Phase.NAME
        self._reuses: ConnectionKey | None = None
        self.address: str | None = None

    def urlopen(
        self, method: str, url: str, body: bytes, headers: Mapping[str, str], **_: object
    ) -> "WireAnswer":
        """Connect, post to `url` (path and query) and read the head. Raises AttemptFailed."""
        try:
            connection = self._connected()
            try:
                return self._exchanged(connection, url, body, headers)
            except BaseException:
                connection.close()
                raise
        except (OSError, HTTPException) as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError | HTTPException) -> Exception:
        if isinstance(error, OSError) and error.errno in failures.OUR_SHORTAGES:
            # Not an OSError, which requests would take for a failure of the connection.
            return RuntimeError(f"The process ran short: {error.strerror}")
        failure = wire_failure(error, self._place())
        if self._reuses and failure.kind == "connection_reset":
            self._wire.idle.distrust(self._reuses)
        return failure

    def _place(self) -> Place:
        seconds = self._wire.config.deadline_s
        return Place(self._phase, self._target, self.address, seconds)

    def _left(self) -> float:
        return max(0.0, self._deadline - time.monotonic())

    def _exchanged(
        self, connection: Connection, target: str, body: bytes, headers: Mapping[str, str]
    ) -> "WireAnswer":
        connection.begin(self._deadline)
        self._phase = Phase.SEND
        connection.post(target, headers, body)
        self._phase = Phase.HEADERS
        response = connection.read_head()
        if not 200 <= response.status <= 599:
            response.close()
            raise HTTPException("a status code that HTTP does not have")
        grace = self._wire.config.excerpt_grace_s
        connection.begin_body(min(self._deadline, time.monotonic() + grace))
        return WireAnswer(response, connection, self._wire.idle)

    def _connected(self) -> Connection:
        """A kept connection to one of the allowed addresses, or a new one."""
        addresses = self._allowed_addresses()[:MAX_ADDRESSES_TRIED]
        for address in addresses:
            if connection := self._wire.idle.take(self._key(address)):
                self._reuses, self.address = connection.key, address
                return connection
        self._phase = Phase.CONNECT
        sock = self._open_first(addresses)
        key = self._key(self.address or "")
        if self._target.scheme == "http":
            return Connection(key, sock)
        self._phase = Phase.TLS
        return Connection(key, start_tls(sock, self._wire.tls, self._target.host))

    def _key(self, address: str) -> ConnectionKey:
        return ConnectionKey(self._target.scheme, address, self._target.port, self._target.host)

    def _allowed_addresses(self) -> list[str]:
        config = self._wire.config
        seconds = min(config.resolve_s, self._left())
        try:
            return self._wire.resolver.allowed_addresses(self._target, config.addresses, seconds)
        except NameTimedOut as error:
            words = "DNS timeout: {host} was not resolved in time. Check the name servers of the domain."
            raise self._place().failed("dns", words) from error
        except NameFailed as error:
            words = "{host} does not resolve: {why}. Check the URL and the DNS of the domain."
            raise self._place().failed("dns", words, why=error) from error
        except AddressBlocked as error:
            words = "Nothing was sent: {why}. {host} may resolve to public addresses only."
            raise self._place().failed("blocked_address", words, why=error) from error

    def _open_first(self, addresses: list[str]) -> DeadlineSocket:
        """Connect to the first address that answers, each with a fair share of the time left."""
        for tries_left in range(len(addresses), 0, -1):
            self.address = addresses[-tries_left]
            share = self._left() / tries_left
            try:
                return open_socket(self.address, self._target.port, share, self._deadline)
            except OSError as error:
                if tries_left == 1 or error.errno in failures.OUR_SHORTAGES:
                    raise
        raise AssertionError("a resolved name has an address")


class WireAnswer:
    """Status line and headers, and a body to read. Stands for the response of urllib3."""

    def __init__(
        self, response: HTTPResponse, connection: Connection, idle: IdleConnections
    ) -> None:
        self.status = response.status
        self.reason = response.reason
        self.headers = response.headers
        self._response = response
        self._connection = connection
        self._idle = idle
        self._complete = False

    def read1(self, size: int) -> bytes:
        """What has arrived of the body, up to `size`. Empty at its end and not before."""
        response = self._response
        data = response.read1(size) if response.length != 0 else b""
        if not data:
            if response.length:
                raise IncompleteRead(b"", response.length)
            self._complete = True
        return data

    def close(self) -> None:
        """Keep the connection if the answer was read to its end."""
        self._response.close()
        if self._complete and not self._response.will_close:
            self._idle.put(self._connection)
        else:
            self._connection.close()
