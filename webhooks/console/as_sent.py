"""What went over the wire, for people: the body readable but exact, the headers without signatures."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from webhooks.models import Delivery, Endpoint, Event

# Stands where a signature would, or an owner's header: what is copied must not be something that a
# receiver believes.
NOT_SHOWN = "(not shown)"
# A body may have 1 MiB; nobody reads that on a page which is drawn anew whenever an attempt is made.
SHOWN_BYTES = 65_536
INDENT = "  "


@dataclass(frozen=True)
class Sent:
    """The request that every attempt of a delivery makes. ``pretty`` is the start of a large body, which
    is then not offered for copying.
    """

    url: str
    headers: tuple[tuple[str, str], ...]
    pretty: str
    size: int
    whole: bool
    body: str = ""
    curl: str = ""


def request_of(delivery: Delivery) -> Sent:
    """The request of a delivery whose endpoint and event are loaded."""
    event, url = delivery.event, delivery.endpoint.url
    start, whole = shown(event.body)
    headers = _headers(event, delivery.endpoint)
    if not whole:
        return Sent(url, headers, pretty(start), len(event.body), whole)
    known = [(name, value) for name, value in headers if not value.startswith("(")]
    return Sent(url, headers, pretty(start), len(event.body), whole, start, curl(url, known, start))


def shown(body: bytes | memoryview) -> tuple[str, bool]:
    """As much of a body as a page shows, and whether that is all of it."""
    return bytes(body[:SHOWN_BYTES]).decode("utf-8", "replace"), len(body) <= SHOWN_BYTES


def _headers(event: Event, endpoint: Endpoint) -> tuple[tuple[str, str], ...]:
    return (
        ("Content-Type", "application/json"),
        ("webhook-id", event.message_id),
        ("webhook-timestamp", "(Unix time of the attempt)"),
        ("webhook-signature", NOT_SHOWN),
        ("X-Webhook-Event", event.type),
        ("X-Webhook-Timestamp", "(Unix time of the attempt)"),
        ("X-Webhook-Signature", NOT_SHOWN),
        ("X-Webhook-Attempt", "(number of the attempt)"),
        *([("X-Webhook-Hops", str(event.hops))] if event.published else []),
        *((name, NOT_SHOWN) for name in endpoint.header_names),
    )


def curl(url: str, headers: list[tuple[str, str]], body: str) -> str:
    """The request for a shell. It carries no signature, so a receiver that verifies refuses it."""
    parts = [f"curl -X POST {shlex.quote(url)}"]
    parts += [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in headers]
    parts.append(f"--data-binary {shlex.quote(body)}")
    return " \\\n  ".join(parts)


def pretty(text: str) -> str:
    """JSON text with line breaks between its tokens; each token stays exactly as it was sent."""
    out: list[str] = []
    depth = 0
    inside_string = escaped = False
    for position, character in enumerate(text):
        if inside_string:
            out.append(character)
            inside_string = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character in "{[":
            depth += 1
            empty = text[position + 1 : position + 2] in ("}", "]")
            out.append(character if empty else character + _line(depth))
        elif character in "}]":
            depth -= 1
            empty = text[position - 1] in "{["
            out.append(character if empty else _line(depth) + character)
        elif character == ",":
            out.append("," + _line(depth))
        elif character == ":":
            out.append(": ")
        else:
            inside_string = character == '"'
            out.append(character)
    return "".join(out)


def _line(depth: int) -> str:
    return "\n" + INDENT * depth
