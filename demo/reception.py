"""What the receiver decides about a delivery: is it genuine, is it new, what to answer and report.

No socket here: `receiver.py` reads requests and writes answers, `acks.py` makes the reports.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from standardwebhooks import Webhook, WebhookVerificationError

from demo.behaviours import BEHAVIOURS, TRY_LATER, Acknowledgement, Answer, Behaviour, Wire, problem
from demo.seeded import DemoFile

# A delivery lives 13 minutes under the policy `command`; at a few deliveries a second this many
# ids and requests cover several such lives in a few megabytes.
REMEMBERED = 10_000


@dataclass(frozen=True)
class Delivery:
    """One POST as it came in. `arrived` is the UTC epoch, in seconds, of its first byte."""

    arrived: float
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def webhook_id(self) -> str:
        return self.headers.get("webhook-id", "")

    @property
    def attempt(self) -> int | None:
        text = self.headers.get("x-webhook-attempt", "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None

    @property
    def command_id(self) -> str | None:
        """Absent from an event that carries no command, a ping for one."""
        try:
            command_id = json.loads(self.body)["command"]["id"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        return command_id if isinstance(command_id, str) else None


@dataclass(frozen=True)
class Outcome:
    """What to do with a delivery, and in a few words why."""

    answer: Answer
    why: str
    wire: Wire = Wire.ANSWER
    acknowledgement: Acknowledgement | None = None


@dataclass(frozen=True)
class Logged:
    """A line of the request log, as `GET /requests` shows it."""

    arrived: float
    path: str
    webhook_id: str
    command_id: str | None
    attempt: int | None
    signature_ok: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "arrived": self.arrived,
            "path": self.path,
            "webhookId": self.webhook_id,
            "commandId": self.command_id,
            "attempt": self.attempt,
            "signatureOk": self.signature_ok,
        }


class RequestLog:
    """The last requests, oldest first."""

    def __init__(self) -> None:
        self._requests: deque[Logged] = deque(maxlen=REMEMBERED)
        self._lock = threading.Lock()

    def add(self, logged: Logged) -> None:
        with self._lock:
            self._requests.append(logged)

    def about(self, command_id: str | None) -> list[dict[str, Any]]:
        """Those of one command, or all of them."""
        with self._lock:
            requests = list(self._requests)
        return [r.as_json() for r in requests if command_id in (None, r.command_id)]


class Memory:
    """How often each delivery came, forgetting the oldest."""

    def __init__(self) -> None:
        self._times: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._lock = threading.Lock()

    def count(self, path: str, webhook_id: str) -> int:
        """Count this POST and say how many that makes: two at once never get the same number."""
        key = (path, webhook_id)
        with self._lock:
            times = self._times.pop(key, 0) + 1
            self._times[key] = times
            if len(self._times) > REMEMBERED:
                self._times.popitem(last=False)
        return times


class Reception:
    """Receives deliveries for every path; safe to call from many threads."""

    def __init__(self, demo_file: DemoFile) -> None:
        self._demo_file = demo_file
        self._memory = Memory()
        self.log = RequestLog()

    def receive(self, delivery: Delivery) -> Outcome:
        behaviour = BEHAVIOURS.get(delivery.path)
        if behaviour is None:
            return Outcome(problem(404, "Not found", "No behaviour has this path."), "no such path")
        refusal = self._refusal(delivery)
        self._remember(delivery, signature_ok=refusal is None)
        return refusal or self._behave(behaviour, delivery)

    def _refusal(self, delivery: Delivery) -> Outcome | None:
        organization = self._demo_file.current()
        endpoint = organization.endpoints.get(delivery.path) if organization else None
        if endpoint is None:
            # Our own fault, not the sender's: an error it retries, where 401 would end the command.
            return Outcome(TRY_LATER, "no secret known for this path yet")
        reason = _signature_problem(endpoint.secret, delivery)
        if reason is None:
            return None
        return Outcome(problem(401, "Signature not accepted", reason), f"signature: {reason}")

    def _remember(self, delivery: Delivery, *, signature_ok: bool) -> None:
        self.log.add(
            Logged(
                arrived=delivery.arrived,
                path=f"/{delivery.path}",
                webhook_id=delivery.webhook_id,
                command_id=delivery.command_id,
                attempt=delivery.attempt,
                signature_ok=signature_ok,
            )
        )

    def _behave(self, behaviour: Behaviour, delivery: Delivery) -> Outcome:
        times = self._memory.count(delivery.path, delivery.webhook_id)
        if times <= behaviour.errors_first:
            return Outcome(TRY_LATER, f"signature ok, error {times} of {behaviour.errors_first}")
        if behaviour.accepts and times > behaviour.errors_first + 1:
            return Outcome(behaviour.answer, "signature ok, duplicate, not carried out again")
        return Outcome(behaviour.answer, "signature ok", behaviour.wire, behaviour.acknowledgement)


def _signature_problem(secret: str, delivery: Delivery) -> str | None:
    try:
        Webhook(secret).verify(delivery.body, dict(delivery.headers), json_parse=False)
    except WebhookVerificationError as refused:
        return str(refused)
    except ValueError:
        # The library lets base64, UTF-8 and unpacking errors of a malformed header through.
        return "Malformed signature headers"
    return None
