"""Ways to fail on the wire, one for each kind of error, and an attempt to meet them with."""

from __future__ import annotations

import contextlib
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.receivers import (
    Authority,
    Behaviour,
    ScriptedReceiver,
    hang,
    reset,
    send_bytes,
    then_close,
)
from tests.webhooks.engine.sending import answer_names
from webhooks import secrets
from webhooks.engine import attempts
from webhooks.engine.claims import Claimed
from webhooks.engine.recorder import Outcome
from webhooks.engine.sender import Sender
from webhooks.rules import signing
from webhooks.rules.policies import PRESETS

# Given a folder for certificates: the address of somebody who causes the trouble.
Trouble = Callable[[Path], AbstractContextManager[str]]


def receiver_that(behaviour: Behaviour) -> Trouble:
    @contextlib.contextmanager
    def trouble(folder: Path) -> Iterator[str]:
        with ScriptedReceiver(behaviour) as receiver:
            yield receiver.url

    return trouble


@contextlib.contextmanager
def no_listener(folder: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    yield f"http://127.0.0.1:{port}/hook"


@contextlib.contextmanager
def a_certificate_of_its_own(folder: Path) -> Iterator[str]:
    pem = Authority(folder).issue("127.0.0.1", self_signed=True)
    with ScriptedReceiver(tls=pem) as receiver:
        yield receiver.url


@contextlib.contextmanager
def no_such_name(folder: Path) -> Iterator[str]:
    def unknown(host: str) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.MonkeyPatch.context() as patch:
        answer_names(patch, unknown)
        yield "https://receiver.example/hook"


@contextlib.contextmanager
def an_address_inside(folder: Path) -> Iterator[str]:
    yield "https://10.0.0.1/hook"


TROUBLES: dict[str, Trouble] = {
    "timeout": receiver_that(hang),
    "dns": no_such_name,
    "connection_refused": no_listener,
    "connection_reset": receiver_that(reset),
    "tls": a_certificate_of_its_own,
    "protocol": receiver_that(then_close(send_bytes(b"220 mail.example ESMTP\r\n"))),
    "blocked_address": an_address_inside,
}


def claimed(
    policy: str, url: str, secret: str | None = None, body: bytes = b"{}", number: int = 1
) -> Claimed:
    """An attempt that was just claimed."""
    return Claimed(
        claimed_monotonic=time.monotonic(),
        attempt_id=1,
        delivery_id=uuid.uuid4(),
        endpoint_id=uuid.uuid4(),
        policy=PRESETS[policy],
        number=number,
        claimed_at=datetime.now(UTC),
        event_id=uuid.uuid4(),
        event_type="test.event",
        url=url,
        body=body,
        secret_ciphertexts=[secrets.encrypt(secret or signing.new_secret())],
        headers_ciphertext="",
        hops=None,
    )


def made(sender: Sender, policy: str, url: str) -> Outcome:
    """What comes of an attempt at this address."""
    return attempts.make(sender, claimed(policy, url))
