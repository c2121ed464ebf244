"""Headers that an owner has sent along with each delivery, a receiver's credentials for instance.

Refused is what belongs to the exchange itself (how the request is framed, where it goes, who sends it)
and what belongs to the signature: a receiver must be able to rely on both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

MAX_HEADERS: Final = 20
MAX_NAME_LENGTH: Final = 100
MAX_VALUE_BYTES: Final = 1024

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OURS: Final = frozenset(
    {
        "accept-encoding",
        "connection",
        "cookie",
        "date",
        "expect",
        "forwarded",
        "host",
        "http2-settings",
        "keep-alive",
        "max-forwards",
        "set-cookie",
        "te",
        "trailer",
        "upgrade",
        "user-agent",
        "via",
        "x-real-ip",
    }
)
_OUR_PREFIXES: Final = (
    "content-",
    "proxy-",
    "sec-",
    "transfer-",
    "webhook-",
    "x-forwarded-",
    "x-webhook-",
)


class HeaderRefused(ValueError):
    """A header that may not be sent along. The message never repeats its value."""


def merged(known: Mapping[str, str], changes: Mapping[str, str | None]) -> dict[str, str]:
    """The headers after a change: a value is set, None removes. Names are compared without their case.

    Raises HeaderRefused.
    """
    by_name = {name.lower(): (name, value) for name, value in known.items()}
    if len({name.lower() for name in changes}) < len(changes):
        raise HeaderRefused("A name occurs twice: upper and lower case are the same in a header.")
    for name, value in changes.items():
        _check_name(name)
        if value is None:
            by_name.pop(name.lower(), None)
        else:
            _check_value(name, value)
            by_name[name.lower()] = (name, value)
    if len(by_name) > MAX_HEADERS:
        raise HeaderRefused(f"These are {len(by_name)} headers; at most {MAX_HEADERS} are sent.")
    return dict(by_name.values())


def _check_name(name: str) -> None:
    if not _TOKEN.fullmatch(name) or len(name) > MAX_NAME_LENGTH:
        raise HeaderRefused(
            f"A header's name has 1 to {MAX_NAME_LENGTH} letters, digits and marks such as -."
        )
    if name.lower() in _OURS or name.lower().startswith(_OUR_PREFIXES):
        raise HeaderRefused(f"{name} is set by the console, or would change how it sends.")


def _check_value(name: str, value: str) -> None:
    if not value.isprintable() or value != value.strip():
        raise HeaderRefused(
            f"The value of {name} contains a line break or another control character, or begins or"
            " ends with a space."
        )
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise HeaderRefused(f"The value of {name} is not UTF-8.") from None
    if not 1 <= size <= MAX_VALUE_BYTES:
        raise HeaderRefused(f"The value of {name} has 1 to {MAX_VALUE_BYTES} bytes, not {size}.")
