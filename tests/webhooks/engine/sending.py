"""What the tests of the sender share."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from ipaddress import ip_network
from typing import Any

import pytest

from webhooks.engine import resolver
from webhooks.engine.sender import Answer, Outgoing, Sender, SenderConfig
from webhooks.rules.addresses import AddressPolicy

LOOPBACK = AddressPolicy(allow_http=True, allowed_networks=(ip_network("127.0.0.0/8"),))
SECRET_HEADER = "v1,c2VjcmV0LXNpZ25hdHVyZQ=="
BODY = b'{"type":"command.dispatch"}'


@contextlib.contextmanager
def sending(**changes: Any) -> Iterator[Sender]:
    """A sender that may use loopback, with a deadline that no healthy test meets."""
    config: dict[str, Any] = {"addresses": LOOPBACK, "deadline_s": 8.0, "idle_settle_s": 0.0}
    sender = Sender(SenderConfig(**(config | changes)))
    try:
        yield sender
    finally:
        sender.close()


def outgoing(url: str, body: bytes = BODY, headers: Mapping[str, str] | None = None) -> Outgoing:
    return Outgoing(url, headers or {"webhook-signature": SECRET_HEADER}, body)


def post_once(url: str, body: bytes = BODY, **changes: Any) -> Answer:
    with sending(**changes) as sender:
        return sender.send(outgoing(url, body))


def answer_names(
    monkeypatch: pytest.MonkeyPatch, lookup: Mapping[str, list[str]] | Callable[[str], list[str]]
) -> list[str]:
    """Put these answers in the place of DNS; the list returned fills with the names asked for."""
    asked: list[str] = []

    def stand_in(host: str) -> list[str]:
        asked.append(host)
        if isinstance(lookup, Mapping):
            return lookup[host]
        return lookup(host)

    monkeypatch.setattr(resolver, "system_lookup", stand_in)
    return asked


@contextlib.contextmanager
def black_hole(address: str = "127.0.0.3") -> Iterator[int]:
    """A port that lets no connection through and refuses none: its queue is full."""
    with socket.socket() as listener, contextlib.ExitStack() as queued:
        listener.bind((address, 0))
        listener.listen(0)
        for _ in range(3):
            filler = queued.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def in_threads(count: int, work: Callable[[], Any]) -> list[Any]:
    """The results of as many calls at once."""
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(work())) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results
