"""What each path of the demo receiver does with a delivery whose signature is right."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum


class Wire(Enum):
    """What becomes of the connection after the request was read."""

    ANSWER = "answer"
    HANG = "hang"
    DROP = "drop"


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Acknowledgement:
    """What the integrator reports to the console after it accepted a command."""

    outcome: str
    detail: str


@dataclass(frozen=True)
class Behaviour:
    about: str
    answer: Answer = Answer(200, b"accepted\n")
    acknowledgement: Acknowledgement | None = None
    errors_first: int = 0
    wire: Wire = Wire.ANSWER

    @property
    def accepts(self) -> bool:
        return self.wire is Wire.ANSWER and 200 <= self.answer.status < 300


def problem(status: int, title: str, detail: str) -> Answer:
    """An RFC 9457 answer."""
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return Answer(status, json.dumps(body).encode() + b"\n", "application/problem+json")


TRY_LATER = Answer(503, b"not ready yet, try again\n")
SUCCESS = Acknowledgement("success", "The demo receiver carried the command out.")
REJECTION = Acknowledgement("rejection", "The demo receiver rejects every command on this path.")

BEHAVIOURS = {
    "accept-and-ack": Behaviour("200, then reports success", acknowledgement=SUCCESS),
    "accept-and-silence": Behaviour("200, and never reports"),
    "accept-and-reject": Behaviour("200, then reports a rejection", acknowledgement=REJECTION),
    "flaky": Behaviour(
        "503 twice for each command, then 200 and reports success",
        acknowledgement=SUCCESS,
        errors_first=2,
    ),
    "broken": Behaviour("always 500", Answer(500, b"this receiver is broken\n")),
    "refuse": Behaviour(
        "400 with a reason",
        problem(400, "Command refused", "The demo receiver refuses every command on this path."),
    ),
    "moved": Behaviour(
        "308 to /accept-and-ack", Answer(308, b"moved\n", headers={"Location": "/accept-and-ack"})
    ),
    "hang": Behaviour("reads the request and answers nothing", wire=Wire.HANG),
    "drop": Behaviour("reads the request and closes without answering", wire=Wire.DROP),
}
