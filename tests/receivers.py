"""A receiver for tests, on real sockets, that answers byte for byte as its script says.

    with ScriptedReceiver(respond(503), respond(200)) as receiver:
        ...post to receiver.url...
    assert receiver.requests[0].body == b"..."

Each request takes the next behaviour of the script, the last one repeats. A behaviour is a callable
given the `Visit`; waiting ones wait on an event that the end of the `with` block sets, so no test
waits for a receiver.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class ReceivedRequest:
    """One request, byte for byte."""

    head: bytes  # request line and headers, with the empty line
    body: bytes

    @property
    def line(self) -> str:
        return self.head.split(b"\r\n", 1)[0].decode("latin-1")

    @property
    def headers(self) -> dict[str, str]:
        """By lower-case name; a name that is sent twice fails the test that reads it."""
        pairs = [line.split(": ", 1) for line in self.head.decode("latin-1").split("\r\n")[1:-2]]
        names = [name.lower() for name, _ in pairs]
        assert len(set(names)) == len(names), f"a header is repeated: {names}"
        return {name.lower(): value for name, value in pairs}


@dataclass
class Visit:
    """One connection, as a behaviour sees it."""

    sock: socket.socket
    released: threading.Event

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait; True when the test is over."""
        return self.released.wait(seconds)

    def close(self) -> None:
        # shutdown first: whoever else holds the descriptor, the other side learns it now.
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


Behaviour = Callable[[Visit], None]


def respond(
    status: int = 200,
    body: bytes = b"",
    headers: dict[str, str] | None = None,
    *,
    reason: str = "Scripted",
) -> Behaviour:
    lines = {"Content-Length": str(len(body))} | (headers or {})
    head = f"HTTP/1.1 {status} {reason}\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items())
    return send_bytes(head.encode("latin-1") + b"\r\n" + body)


def redirect_to(location: str, status: int = 302) -> Behaviour:
    return respond(status, headers={"Location": location})


def send_bytes(data: bytes) -> Behaviour:
    """Answer with exactly these bytes, and keep the connection open."""
    return lambda visit: visit.send(data)


def then_close(behaviour: Behaviour) -> Behaviour:
    def act(visit: Visit) -> None:
        behaviour(visit)
        visit.close()

    return act


def drip(data: bytes, every: float) -> Behaviour:
    """One byte at a time."""

    def act(visit: Visit) -> None:
        for position in range(len(data)):
            visit.send(data[position : position + 1])
            if visit.wait(every):
                return

    return act


def repeat(data: bytes, every: float, *, after: bytes = b"") -> Behaviour:
    """The same bytes for ever, after others once. `every` 0 is a flood."""

    def act(visit: Visit) -> None:
        visit.send(after)
        while not (visit.wait(every) if every else visit.released.is_set()):
            visit.send(data)

    return act


def endless_100_continue(every: float) -> Behaviour:
    return repeat(b"HTTP/1.1 100 Continue\r\n\r\n", every)


def chunked_endless(every: float = 0, size: int = 4096) -> Behaviour:
    chunk = b"%x\r\n%b\r\n" % (size, b"x" * size)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return repeat(chunk, every, after=head)


def hang(visit: Visit) -> None:
    """Take the request and say nothing."""
    visit.wait()


def close_without_answer(visit: Visit) -> None:
    visit.close()


def reset(visit: Visit) -> None:
    """Close so that the other side sees a reset."""
    visit.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    visit.sock.close()


def then_reset(behaviour: Behaviour, after: float = 0.05) -> Behaviour:
    """A reset discards what the other side has not read yet, so give it the time to read."""

    def act(visit: Visit) -> None:
        behaviour(visit)
        visit.wait(after)
        reset(visit)

    return act


class ScriptedReceiver:
    """A server on a free port of 127.0.0.1. Arguments are what it does with each request."""

    def __init__(
        self,
        *script: Behaviour,
        tls: Path | None = None,
        at_connect: Behaviour | None = None,
    ) -> None:
        """`tls`: a PEM file with key and certificate. `at_connect`: instead of TLS and reading."""
        self.script = list(script) or [respond()]
        self.requests: list[ReceivedRequest] = []
        self.connections = 0
        self.server_names: list[str | None] = []
        self._at_connect = at_connect
        self._released = threading.Event()
        self._lock = threading.Lock()
        self._visits: list[Visit] = []
        self._threads: list[threading.Thread] = []
        self._context = self._tls_context(tls) if tls else None
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]

    @property
    def url(self) -> str:
        return f"{'https' if self._context else 'http'}://127.0.0.1:{self.port}/hook"

    def __enter__(self) -> ScriptedReceiver:
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._released.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        with self._lock:
            for visit in self._visits:
                visit.close()
        for thread in self._threads:
            thread.join(5)
        self._listener.close()

    def _tls_context(self, pem: Path) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        context.sni_callback = lambda _, name, __: self.server_names.append(name)
        return context

    def _start(self, work: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=work, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._released.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._start(self._serve, sock)

    def _serve(self, sock: socket.socket) -> None:
        visit = Visit(sock, self._released)
        with self._lock:
            self._visits.append(visit)
        try:
            if self._at_connect:
                self._at_connect(visit)
                return
            if self._context:
                visit.sock = self._context.wrap_socket(sock, server_side=True)
            while request := read_request(visit.sock):
                self._take(request)(visit)
        except OSError:
            pass  # the other side has gone, or the test is over
        finally:
            visit.close()
            with self._lock:
                self._visits.remove(visit)

    def _take(self, request: ReceivedRequest) -> Behaviour:
        with self._lock:
            self.requests.append(request)
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]


def read_request(sock: socket.socket) -> ReceivedRequest | None:
    """The next request, or None when the connection ends before one is complete."""
    data = b""
    while (end := data.find(b"\r\n\r\n")) < 0:
        if not (more := sock.recv(65536)):
            return None
        data += more
    head, body = data[: end + 4], data[end + 4 :]
    length = int(ReceivedRequest(head, b"").headers.get("content-length", "0"))
    while len(body) < length:
        if not (more := sock.recv(65536)):
            return None
        body += more
    return ReceivedRequest(head, body)


@dataclass
class Authority:
    """A certificate authority of the test's own."""

    folder: Path
    name: str = "Test authority"
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: _new_key())
    certificate: x509.Certificate = field(init=False)

    def __post_init__(self) -> None:
        subject = _named(self.name)
        builder = _builder(subject, subject, self.key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.certificate = builder.sign(self.key, hashes.SHA256())

    @property
    def bundle(self) -> Path:
        """A file with the authority's certificate, to verify by."""
        path = self.folder / f"{self.name}.pem"
        path.write_bytes(self.certificate.public_bytes(Encoding.PEM))
        return path

    def issue(self, *names: str, expired: bool = False, self_signed: bool = False) -> Path:
        """A PEM file with key and certificate for these names and addresses."""
        key = _new_key()
        subject = _named(names[0])
        issuer = subject if self_signed else self.certificate.subject
        certificate = (
            _builder(subject, issuer, key, expired=expired)
            .add_extension(x509.SubjectAlternativeName(_general_names(names)), critical=False)
            .sign(key if self_signed else self.key, hashes.SHA256())
        )
        path = self.folder / f"{names[0]}-{certificate.serial_number}.pem"
        path.write_bytes(
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            + certificate.public_bytes(Encoding.PEM)
        )
        return path


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, *, expired: bool = False
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    end = now - dt.timedelta(hours=1) if expired else now + dt.timedelta(days=1)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=2))
        .not_valid_after(end)
    )


def _general_names(names: Iterable[str]) -> list[x509.GeneralName]:
    found: list[x509.GeneralName] = []
    for name in names:
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(name)))
        except ValueError:
            found.append(x509.DNSName(name))
    return found
