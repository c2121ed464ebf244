"""Signatures, pinned to a published vector and to a public library of the specification."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time

import pytest
from standardwebhooks import Webhook

from webhooks.rules.signing import decode_secret, new_secret, signature_headers

VECTOR_SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
VECTOR_BODY = '{"type":"command.dispatch","data":{"x":1.10,"name":"café"}}'.encode()


def headers(body: bytes, *secrets: str, timestamp: int | None = None) -> dict[str, str]:
    now = int(time.time()) if timestamp is None else timestamp
    return signature_headers("msg_0001", now, body, secrets, "command.dispatch", 3)


def test_the_headers_of_the_vector() -> None:
    assert headers(VECTOR_BODY, VECTOR_SECRET, timestamp=1767225600) == {
        "webhook-id": "msg_0001",
        "webhook-timestamp": "1767225600",
        "webhook-signature": "v1,Pq2FauQO++evI4GFE+yDa2UK0Ulus/a1YvlYzdWyCE0=",
        "X-Webhook-Event": "command.dispatch",
        "X-Webhook-Timestamp": "1767225600",
        "X-Webhook-Signature": "sha256="
        "f9f5fcc0e4ca4dd6323ddd5dc78c48d720d62e3ee595fa0cca0e963f3d33bf73",
        "X-Webhook-Attempt": "3",
    }


BODIES = [
    b"{}",
    '{"name":"café"}'.encode(),
    '{"name":"😀"}'.encode(),
    b'{"x":1.10,"y":1e2,"z":1.0}',
    b'{"n":12345678901234567890123}',
    b'{ "a" : 1 ,\n "a" : 2 }',
    b'{"html":"</script>"}',
    b'"text"',
]


@pytest.mark.parametrize("body", BODIES)
def test_a_public_library_verifies_what_we_sign(body: bytes) -> None:
    secret = new_secret()
    Webhook(secret).verify(body, headers(body, secret))


@pytest.mark.parametrize("body", BODIES)
def test_the_plain_signature_takes_three_lines_to_verify(body: bytes) -> None:
    secret = new_secret()
    signed = headers(body, secret)
    key = base64.b64decode(secret.removeprefix("whsec_"))
    message = signed["X-Webhook-Timestamp"].encode() + b"." + body
    expected = "sha256=" + hmac.new(key, message, hashlib.sha256).hexdigest()
    assert signed["X-Webhook-Signature"] == expected


def test_during_a_rotation_either_secret_verifies_and_the_newest_signs_plainly() -> None:
    new, old = new_secret(), new_secret()
    signed = headers(b"{}", new, old)
    for secret in (new, old):
        Webhook(secret).verify(b"{}", signed)
    first, second = signed["webhook-signature"].split(" ")
    alone = headers(b"{}", new, timestamp=int(signed["webhook-timestamp"]))
    assert alone["webhook-signature"] == first != second
    assert alone["X-Webhook-Signature"] == signed["X-Webhook-Signature"]


def test_a_new_secret_is_long_and_never_the_same() -> None:
    secrets = {new_secret() for _ in range(100)}
    assert len(secrets) == 100
    assert {len(decode_secret(secret)) for secret in secrets} == {32}


@pytest.mark.parametrize(
    "secret",
    [
        "",
        "whsec_",
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYX",
        "WHSEC_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX",
        "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRY",
        "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFR X",
        "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRéX",
        "whsec_" + base64.b64encode(b"x" * 23).decode(),
        "whsec_" + base64.b64encode(b"x" * 65).decode(),
    ],
    ids=["empty", "no key", "no prefix", "case", "padding", "space", "letter", "short", "long"],
)
def test_a_malformed_secret_is_refused_without_repeating_it(secret: str) -> None:
    with pytest.raises(ValueError, match="signing secret") as refusal:
        decode_secret(secret)
    key = secret.removeprefix("whsec_")
    assert not key or key not in str(refusal.value)


def test_nothing_is_sent_unsigned() -> None:
    with pytest.raises(ValueError, match="at least one secret"):
        headers(b"{}")
