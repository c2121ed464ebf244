"""What is signed is what is sent is what was frozen: one value, byte for byte, in every attempt."""

from __future__ import annotations

import hashlib
import hmac
import time
from dataclasses import replace
from datetime import timedelta

import pytest
from standardwebhooks.webhooks import Webhook

from tests.receivers import ScriptedReceiver, respond
from tests.webhooks.engine.sending import sending
from tests.webhooks.engine.troubles import claimed
from webhooks.engine import attempts
from webhooks.rules import signing

BODIES = [
    '{"t":"é 🚀 </script>"}'.encode(),
    b'{"b":1.10,"a":12345678901234567890123,"a":2,"f":1E400}',
    b'{ "spaced" :  [1,\t2 ] }\r\n',
    b"\xff\xfe no text at all \x00",
    b"",
]


@pytest.mark.parametrize("body", BODIES)
def test_each_attempt_brings_the_same_bytes_and_a_signature_over_them(body: bytes) -> None:
    secret = signing.new_secret()
    with ScriptedReceiver(respond(503), respond(200)) as receiver, sending() as sender:
        first = claimed("command", receiver.url, secret, body)
        for number in (1, 2):
            attempts.make(sender, replace(first, number=number))

    assert [request.body for request in receiver.requests] == [body, body]
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1
    for number, request in enumerate(receiver.requests, start=1):
        assert request.headers["x-webhook-attempt"] == str(number)
        assert request.headers["content-length"] == str(len(body))
        timestamp = request.headers["x-webhook-timestamp"]
        digest = hmac.new(
            signing.decode_secret(secret), timestamp.encode() + b"." + body, hashlib.sha256
        )
        assert request.headers["x-webhook-signature"] == f"sha256={digest.hexdigest()}"


@pytest.mark.parametrize("body", BODIES[:3])
def test_a_public_library_verifies_what_arrived(body: bytes) -> None:
    secret = signing.new_secret()
    with ScriptedReceiver() as receiver, sending() as sender:
        attempts.make(sender, claimed("command", receiver.url, secret, body))

    [request] = receiver.requests
    Webhook(secret).verify(request.body, request.headers)


def test_a_signature_is_as_young_as_its_attempt() -> None:
    """However long ago the attempt was claimed: receivers refuse what is older than some minutes."""
    with ScriptedReceiver() as receiver, sending() as sender:
        attempt = claimed("command", receiver.url)
        long_ago = attempt.claimed_at - timedelta(hours=1)
        before = int(time.time())
        attempts.make(sender, replace(attempt, claimed_at=long_ago))

    [request] = receiver.requests
    assert before <= int(request.headers["webhook-timestamp"]) <= time.time()
    assert request.headers["webhook-timestamp"] == request.headers["x-webhook-timestamp"]
