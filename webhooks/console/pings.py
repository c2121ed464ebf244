"""The last ping of an endpoint, and what came back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from organizations.console import words
from organizations.models import AuditEntry
from webhooks.console.rows import ERROR_WORDS
from webhooks.models import Attempt, Delivery, Endpoint

ANSWER = ("verdict", "status_code", "error_kind", "error", "duration_ms")


@dataclass(frozen=True)
class LastPing:
    """``answer`` is its attempt; None while it waits to be sent, or when it was ended before."""

    at: datetime
    state: str
    answer: dict[str, Any] | None

    @property
    def waits(self) -> bool:
        return self.answer is None and self.state == Delivery.State.PENDING

    @property
    def words(self) -> str:
        """Such as ``was answered with 200 after 45 ms``."""
        answer = self.answer
        if answer is None:
            return "waits to be sent" if self.waits else "was never sent"
        if not answer["verdict"]:
            return "is on the wire"
        if answer["verdict"] == "lost":
            return "was lost on our side: nobody knows whether it arrived"
        ms = answer["duration_ms"]
        after = "" if ms is None else f" after {words.milliseconds(ms)}"
        if answer["status_code"]:
            return f"was answered with {answer['status_code']}{after}"
        return f"had no answer{after}: {ERROR_WORDS.get(answer['error_kind'], 'broken')}"


def last_ping_of(endpoint: Endpoint) -> LastPing | None:
    """Found by the audit trail, which is short for one endpoint: among the deliveries of a busy one a
    ping would have to be searched for.
    """
    pings = AuditEntry.objects.filter(
        target_type="endpoint", target_id=str(endpoint.pk), act="endpoint.ping"
    )
    pk = pings.order_by("-pk").values_list("after__deliveryId", flat=True).first()
    if pk is None:
        return None
    delivery = Delivery.objects.get(pk=pk, endpoint=endpoint)
    attempts = Attempt.objects.filter(delivery=delivery).order_by("-number")
    return LastPing(delivery.created_at, delivery.state, attempts.values(*ANSWER).first())
