"""What an owner may write into the fields of an endpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from webhooks import secrets
from webhooks.endpoints.refusals import FieldRefused
from webhooks.policies import POLICIES
from webhooks.rules import event_types, headers
from webhooks.rules.headers import HeaderRefused

MAX_EVENT_TYPES = 100
MAX_IN_FLIGHT = 1000


def checked(wanted: Mapping[str, Any], headers_ciphertext: str) -> dict[str, Any]:
    """The fields of the row for what is wanted; ``headers`` change those behind ``headers_ciphertext``.

    The URL has been checked before, outside of any transaction: that may take a while. Raises
    FieldRefused.
    """
    fields = dict(wanted)
    if "policy" in fields and fields["policy"] not in POLICIES:
        raise FieldRefused("policy", f"The policies are {', '.join(POLICIES)}.")
    if "event_types" in fields:
        fields["event_types"] = _subscriptions(fields["event_types"])
    most = fields.get("max_in_flight")
    if most is not None and not 1 <= most <= MAX_IN_FLIGHT:
        raise FieldRefused("max_in_flight", f"It is 1 to {MAX_IN_FLIGHT}, or not set.")
    if "headers" in fields:
        fields |= _headers(headers_ciphertext, fields.pop("headers"))
    return fields


def _subscriptions(wanted: Sequence[str]) -> list[str]:
    found = list(dict.fromkeys(wanted))
    if len(found) > MAX_EVENT_TYPES:
        raise FieldRefused("event_types", f"At most {MAX_EVENT_TYPES} are possible.")
    for one in found:
        if not event_types.is_subscription(one):
            raise FieldRefused(
                "event_types",
                f"{one[:100]!r} is no type of events: write it as command.failed, a prefix of them as"
                " command.*, all as *.",
            )
    return found


def _headers(ciphertext: str, changes: Mapping[str, str | None]) -> dict[str, Any]:
    try:
        after = headers.merged(secrets.decrypt_headers(ciphertext), changes)
    except HeaderRefused as refusal:
        raise FieldRefused("headers", str(refusal)) from None
    except secrets.SecretUnreadable:
        reason = "Those stored before cannot be read with the keys in SECRETS_ENCRYPTION_KEYS."
        raise FieldRefused("headers", reason) from None
    return {"header_names": sorted(after), "headers_ciphertext": secrets.encrypt_headers(after)}
