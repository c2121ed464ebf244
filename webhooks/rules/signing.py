"""Signatures by which a receiver knows that a delivery is ours and unchanged.

Standard Webhooks (webhook-id, webhook-timestamp, webhook-signature), so that any public library of
that specification verifies a delivery, and beside it one plain HMAC for receivers that write their
own three lines. Both cover the exact bytes that are sent.
"""

import base64
import binascii
import hmac
import secrets as randomness
from collections.abc import Sequence

SECRET_PREFIX = "whsec_"  # noqa: S105 - the prefix of every secret, not one of them
# Standard Webhooks asks for 24 to 64 bytes; 32 is the digest's own length.
NEW_SECRET_BYTES = 32
MIN_SECRET_BYTES = 24
MAX_SECRET_BYTES = 64


def new_secret() -> str:
    return SECRET_PREFIX + base64.b64encode(randomness.token_bytes(NEW_SECRET_BYTES)).decode()


def decode_secret(secret: str) -> bytes:
    """The key bytes of a `whsec_…` secret. Raises ValueError, which never repeats the secret."""
    if not secret.startswith(SECRET_PREFIX):
        raise ValueError(f"A signing secret starts with {SECRET_PREFIX}.")
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("A signing secret is base64 after its prefix.") from None
    if not MIN_SECRET_BYTES <= len(key) <= MAX_SECRET_BYTES:
        raise ValueError(
            f"A signing secret has {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES} bytes, not {len(key)}."
        )
    return key


def signature_headers(
    message_id: str,
    timestamp: int,
    body: bytes,
    secrets: Sequence[str],
    event_type: str,
    attempt: int,
) -> dict[str, str]:
    """The headers of one attempt.

    `timestamp` is Unix time in whole seconds, taken right before the attempt, because receivers
    refuse old ones. `secrets` has the newest first; during a rotation each signs. The plain
    signature has room for one and takes the newest.
    """
    keys = [decode_secret(secret) for secret in secrets]
    if not keys:
        raise ValueError("A delivery is signed with at least one secret.")
    stamped_body = b"%d.%b" % (timestamp, body)
    message = b"%b.%b" % (message_id.encode(), stamped_body)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(_standard_signature(key, message) for key in keys),
        "X-Webhook-Event": event_type,
        "X-Webhook-Timestamp": str(timestamp),
        "X-Webhook-Signature": "sha256=" + hmac.digest(keys[0], stamped_body, "sha256").hex(),
        "X-Webhook-Attempt": str(attempt),
    }


def _standard_signature(key: bytes, message: bytes) -> str:
    return "v1," + base64.b64encode(hmac.digest(key, message, "sha256")).decode()
