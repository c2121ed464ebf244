"""The mail server that ``EMAIL_URL`` names."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

# The scheme says how TLS begins, and so the usual port: not at all, by STARTTLS, from the first byte.
PORTS: Final = {"smtp": 25, "smtp+tls": 587, "smtp+ssl": 465}


@dataclass(frozen=True)
class MailServer:
    """Where mail is handed over; without a host there is none, and mail is shown and logged instead."""

    host: str = ""
    port: int = 0
    user: str = ""
    password: str = field(default="", repr=False)
    scheme: str = "smtp"


def parse(url: str) -> MailServer:
    """The server of ``smtp+tls://user:password@host:587``. Raises ValueError, which never quotes it."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in PORTS:
        raise ValueError(f"it must begin with one of {', '.join(f'{s}://' for s in PORTS)}")
    try:
        # Its own kind of address to urllib: what the scheme means is ours.
        parts = urlsplit(f"http://{rest}")
        port = parts.port or PORTS[scheme]
    except ValueError:
        raise ValueError("its host or port is malformed") from None
    if not parts.hostname or parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError("it must be a scheme, a user with a password, a host and a port, no more")
    user, password = unquote(parts.username or ""), unquote(parts.password or "")
    if bool(user) != bool(password):
        raise ValueError("a user needs a password, and a password a user")
    return MailServer(parts.hostname, port, user, password, scheme)
