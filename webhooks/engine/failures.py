"""What went wrong on the wire, in words that the owner of an endpoint can act on.

The words never hold the URL's path or query, a header of ours, or anything that the receiver sent
in place of an answer: a receiver that echoes would put our own request line there.
"""

import errno
import ssl
from dataclasses import dataclass
from http.client import HTTPException

from webhooks.rules.addresses import ParsedTarget
from webhooks.rules.verdicts import Phase

# Shortages of our own: not the receiver's failure, and not to be recorded as one.
OUR_SHORTAGES = frozenset([errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS])

MAX_WORDS = 500

_TIMED_OUT = {
    Phase.CONNECT: "No connection to {where} within {seconds:g} s. Check that the receiver runs and that "
    "no firewall drops what the console sends.",
    Phase.TLS: "{where} accepted the connection, but TLS was not established within {seconds:g} s.",
    Phase.SEND: "{where} did not take the whole request within {seconds:g} s.",
    Phase.HEADERS: "{where} took the request, but did not answer completely (status line and headers) "
    "within {seconds:g} s. Answer first and do the work afterwards.",
}

_CLOSED = (
    "{where} closed the connection without answering. It may have processed the request: "
    "look for it in the receiver's log."
)

_TLS_ENDED = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)


class HeadTooLong(HTTPException):
    """More bytes before the end of the headers than any answer has."""


class AttemptFailed(Exception):
    """An attempt without a status code. `words` say what happened and what to do."""

    def __init__(self, kind: str, phase: Phase, words: str) -> None:
        super().__init__(words)
        self.kind = kind
        self.phase = phase
        self.words = words[:MAX_WORDS]


@dataclass(frozen=True)
class Place:
    """Where an attempt was when it failed."""

    phase: Phase
    target: ParsedTarget
    address: str | None
    seconds: float

    @property
    def where(self) -> str:
        host, port = self.target.host, self.target.port
        address = f" ({self.address})" if self.address and self.address != host else ""
        return f"{host}{address} port {port}"

    def failed(self, kind: str, words: str, **facts: object) -> AttemptFailed:
        facts |= {
            "where": self.where,
            "host": self.target.host,
            "seconds": self.seconds,
        }
        return AttemptFailed(kind, self.phase, words.format(**facts))


def wire_failure(error: OSError | HTTPException, place: Place) -> AttemptFailed:
    """The meaning of an exception of the socket, of TLS or of the answer's parser."""
    if isinstance(error, TimeoutError):
        return place.failed("timeout", _TIMED_OUT[place.phase])
    if place.phase == Phase.CONNECT:
        return _connect_failure(error, place)
    if place.phase == Phase.TLS:
        return _tls_failure(error, place)
    if isinstance(error, ssl.SSLError) and not isinstance(error, _TLS_ENDED):
        return place.failed("tls", "TLS with {where} broke: {why}.", why=_openssl_words(error))
    if isinstance(error, OSError):
        return place.failed("connection_reset", _CLOSED)
    if isinstance(error, HeadTooLong):
        return place.failed("protocol", "{where} sent more headers than an answer may have.")
    return place.failed(
        "protocol",
        "{where} did not answer in HTTP/1.1. Check the port and the receiver.",
    )


def _connect_failure(error: OSError | HTTPException, place: Place) -> AttemptFailed:
    if isinstance(error, ConnectionResetError):
        words = "{where} took the connection and closed it at once. Nothing was sent."
        return place.failed("connection_reset", words)
    if isinstance(error, ConnectionRefusedError):
        words = "{where} refused the connection. Check that the receiver runs, and the port."
    else:
        words = "No way to {where}: {why}. Check the address and the network."
    why = getattr(error, "strerror", None) or "unknown error"
    return place.failed("connection_refused", words, why=why)


def _tls_failure(error: OSError | HTTPException, place: Place) -> AttemptFailed:
    why = ""
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message.rstrip(".")
        words = (
            "The certificate of {where} is not valid: {why}. "
            "Install one that a public authority issued for this host, with its whole chain."
        )
    elif isinstance(error, ssl.SSLError):
        why = _openssl_words(error)
        words = "No TLS with {where}: {why}. Check that this port speaks TLS 1.2 or newer."
    else:
        words = "{where} closed the connection during the TLS handshake. Nothing was sent."
    return place.failed("tls", words, why=why)


def _openssl_words(error: ssl.SSLError) -> str:
    return (error.reason or "unknown error").lower().replace("_", " ")
