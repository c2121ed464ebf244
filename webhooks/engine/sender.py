"""One POST to a receiver, and what came of it.

Requests is used through its adapter alone: no session, hence no cookies, no netrc, no proxies of
the environment, no redirects and no repetition. Where the adapter asks for a connection pool it
gets an `Exchange` (see there).
"""

import http.client
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import certifi
import requests
from requests.adapters import HTTPAdapter
from requests.structures import CaseInsensitiveDict

from webhooks.engine.exchange import Exchange, SenderConfig, Wire
from webhooks.engine.failures import AttemptFailed
from webhooks.engine.resolver import Resolver
from webhooks.engine.transport import IdleConnections, tls_context
from webhooks.rules.addresses import ParsedTarget, UrlNotAllowed, check_url
from webhooks.rules.verdicts import Phase

__all__ = ["Answer", "Outgoing", "Sender", "SenderConfig"]

# Headers of the receiver that people read; longer ones are cut.
MAX_SHOWN_HEADER = 2000


@dataclass(frozen=True)
class Outgoing:
    """What to send: the body's bytes are signed and go out as they are."""

    url: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    """What came of an attempt: a status code, or an `error_kind`, and the `phase` that it came to.

    `started` and `finished` are of time.monotonic(). The attempt is finished when the status line
    and headers are complete, or when it failed; the excerpt comes after and changes nothing.
    """

    started: float
    finished: float
    status_code: int | None = None
    error_kind: str | None = None
    phase: Phase = Phase.BODY  # which it failed in, or reached
    error: str = ""
    excerpt: bytes = b""
    excerpt_truncated: bool = False  # there was more of the body, or we did not wait for it
    body_incomplete: bool = False  # the receiver broke the body off
    retry_after: str | None = None
    location: str | None = None
    address: str | None = None  # which was connected to


class _Request(requests.PreparedRequest):
    """A request that is complete as it stands: nothing is left for requests to prepare."""

    def __init__(self, outgoing: Outgoing, target: ParsedTarget, user_agent: str) -> None:
        super().__init__()
        self.method = "POST"
        self.url = target.url
        self.target = target.target
        self.body = outgoing.body
        self.headers = CaseInsensitiveDict(outgoing.headers)
        self.headers.update(
            {
                "Host": target.host_header,
                "User-Agent": user_agent,
                "Accept-Encoding": "identity",
                "Content-Type": "application/json",
                "Content-Length": str(len(outgoing.body)),
            }
        )
        self.exchange: Exchange | None = None


class _Adapter(HTTPAdapter):
    """requests' adapter, with an exchange in the place of its pools."""

    def get_connection_with_tls_context(self, request: Any, *_: Any, **__: Any) -> Any:
        return request.exchange

    def cert_verify(self, *_: Any) -> None:
        """The exchange verifies, against its own bundle."""

    def request_url(self, request: Any, proxies: Any) -> str:
        return str(request.target)


class Sender:
    """Sends deliveries. Thread-safe; made after the fork, one for each process."""

    def __init__(self, config: SenderConfig) -> None:
        """Raises OSError when the bundle of authorities cannot be read."""
        self._config = config
        self._adapter = _Adapter()
        self._wire = Wire(
            config=config,
            tls=tls_context(config.ca_bundle or certifi.where()),
            resolver=Resolver(),
            idle=IdleConnections(config.idle_settle_s, config.idle_reuse_s, config.max_idle),
        )

    def close(self) -> None:
        """Close the connections that are kept; attempts under way end by themselves."""
        self._wire.idle.close()
        self._adapter.close()

    def send(self, outgoing: Outgoing) -> Answer:
        """Make one attempt. Nothing that the network or the receiver does makes it raise."""
        started = time.monotonic()
        try:
            target = check_url(outgoing.url, self._config.addresses)
        except UrlNotAllowed as refusal:
            return _failed(started, None, "blocked_address", Phase.NAME, refusal.reason)
        request = _Request(outgoing, target, self._config.user_agent)
        exchange = Exchange(self._wire, target, started + self._config.deadline_s)
        request.exchange = exchange
        try:
            response = self._adapter.send(request, stream=True)
        except AttemptFailed as error:
            return _failed(started, exchange.address, error.kind, error.phase, error.words)
        except requests.RequestException as error:
            kind, phase = _kind_of(error)
            return _failed(started, exchange.address, kind, phase, type(error).__name__)
        finished = time.monotonic()
        try:
            return self._answer(started, finished, response, exchange.address)
        finally:
            response.raw.close()

    def _answer(
        self, started: float, finished: float, response: requests.Response, address: str | None
    ) -> Answer:
        body, ended, broken = _read_body(response.raw, self._config.read_cap)
        size = self._config.excerpt_bytes
        return Answer(
            started=started,
            finished=finished,
            status_code=response.status_code,
            excerpt=body[:size],
            excerpt_truncated=len(body) > size or not (ended or broken),
            body_incomplete=broken,
            retry_after=_shown(response.headers.get("Retry-After")),
            location=_shown(response.headers.get("Location")),
            address=address,
        )


def _failed(started: float, address: str | None, kind: str, phase: Phase, words: str) -> Answer:
    return Answer(
        started=started,
        finished=time.monotonic(),
        error_kind=kind,
        phase=phase,
        error=words,
        address=address,
    )


def _kind_of(error: requests.RequestException) -> tuple[str, Phase]:
    """For what an adapter raises that stands in for the wire."""
    if isinstance(error, requests.ConnectTimeout):
        return "timeout", Phase.CONNECT
    if isinstance(error, requests.Timeout):
        return "timeout", Phase.HEADERS
    if isinstance(error, requests.exceptions.SSLError):
        return "tls", Phase.TLS
    return "connection_reset", Phase.HEADERS


def _read_body(raw: Any, cap: int) -> tuple[bytes, bool, bool]:
    """At most `cap` bytes and one, whether the body ended, and whether it was broken off.

    The verdict stands already: nothing in here is a failure.
    """
    body = bytearray()
    try:
        while len(body) <= cap:
            data = raw.read1(cap + 1 - len(body))
            if not data:
                return bytes(body), True, False
            body += data
    except TimeoutError:
        return bytes(body), False, False
    except (OSError, http.client.HTTPException):
        return bytes(body), False, True
    return bytes(body), False, False


def _shown(header: str | None) -> str | None:
    """A header of the receiver as people may see it: UTF-8 if it is, without control characters."""
    if header is None:
        return None
    text = header.encode("latin-1", "replace").decode("utf-8", "replace")
    return "".join(c if c.isprintable() else "\ufffd" for c in text[:MAX_SHOWN_HEADER])
