"""What went over the wire, for people: the body readable but exact, the headers without signatures."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from commands.models import Command

# Stands where a signature would: a copied command must not be one that a receiver believes.
NOT_SHOWN = "(not shown)"
INDENT = "  "


@dataclass(frozen=True)
class Sent:
    """The request that every attempt of a command makes."""

    url: str
    headers: tuple[tuple[str, str], ...]
    body: str
    pretty: str
    size: int
    curl: str


def request_of(command: Command) -> Sent | None:
    """The request of a dispatched command, whose delivery and event are loaded; None before."""
    if command.delivery is None:
        return None
    event, url = command.delivery.event, command.delivery.endpoint.url
    raw = bytes(event.body)
    body = raw.decode("utf-8", "replace")
    headers = (
        ("Content-Type", "application/json"),
        ("webhook-id", event.message_id),
        ("webhook-timestamp", "(Unix time of the attempt)"),
        ("webhook-signature", NOT_SHOWN),
        ("X-Webhook-Event", event.type),
        ("X-Webhook-Timestamp", "(Unix time of the attempt)"),
        ("X-Webhook-Signature", NOT_SHOWN),
        ("X-Webhook-Attempt", "(number of the attempt)"),
    )
    known = [(name, value) for name, value in headers if not value.startswith("(")]
    return Sent(url, headers, body, pretty(body), len(raw), curl(url, known, body))


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
