"""A mail server that keeps what it is given, and ways for one to misbehave."""

from __future__ import annotations

import asyncio
import email.policy
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from types import TracebackType
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session
from pytest_django import Settings


class MailSink(Controller):
    """Takes every mail, unless told otherwise. ``mails`` are what it took, for ``recipients``."""

    def __init__(self) -> None:
        super().__init__(self, hostname="127.0.0.1", port=0)
        self.mails: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.refuse_recipient: str | None = None
        self.refuse_content: str | None = None
        self.hang_up_after_content = False

    def _trigger_server(self) -> None:
        """Asked for any free port, the server says which it got."""
        assert isinstance(self.server, asyncio.Server)
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call]

    def __enter__(self) -> MailSink:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[Any]
    ) -> str:
        if self.refuse_recipient:
            return self.refuse_recipient
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        if self.refuse_content:
            return self.refuse_content
        assert isinstance(envelope.content, bytes)
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        assert isinstance(message, EmailMessage)
        self.recipients += envelope.rcpt_tos
        self.mails.append(message)
        return "250 OK"

    async def handle_QUIT(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        if self.hang_up_after_content:
            assert isinstance(server.transport, asyncio.WriteTransport)
            server.transport.abort()
        return "221 Bye"

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"


def use(settings: Settings, port: int) -> None:
    """Have mail handed over to the server on this port of this machine."""
    settings.EMAIL_BACKEND = "organizations.notices.transport.SmtpBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", port


@contextmanager
def misbehaving(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that treats each connection as ``serve`` does, in a thread each; its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    connections: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                connected, _ = listener.accept()
            except OSError:
                return
            connections.append(connected)
            threading.Thread(target=_quietly, args=(serve, connected), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for connected in connections:
            connected.close()


def _quietly(serve: Callable[[socket.socket], None], connected: socket.socket) -> None:
    try:
        serve(connected)
    except OSError:
        connected.close()


def dialogue(connected: socket.socket) -> None:
    """Play along as far as the content, and hang up without an answer to it."""
    connected.sendall(b"220 here\r\n")
    with connected.makefile("rb") as lines:
        for line in lines:
            word = line[:4].upper()
            connected.sendall(b"354 go on\r\n" if word == b"DATA" else b"250 OK\r\n")
            if word == b"DATA":
                break
        for line in lines:
            if line == b".\r\n":
                break
    connected.shutdown(socket.SHUT_RDWR)
    connected.close()


def refuse_to_talk(connected: socket.socket) -> None:
    """Accept the connection and close it."""
    connected.close()


def say_nothing(connected: socket.socket) -> None:
    """Accept the connection and leave it open, silent."""


def drip(connected: socket.socket) -> None:
    """A greeting that never ends, one byte at a time."""
    pause = threading.Event()
    while True:
        connected.sendall(b"2")
        pause.wait(0.05)
