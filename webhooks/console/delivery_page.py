"""The page of a delivery that is no command's: all it shows, decided before it is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from organizations.console.looks import Look
from organizations.console.responses import revision_of
from webhooks.console import attempts, deliveries, schedule
from webhooks.console.deliveries import DeliveryRow
from webhooks.console.why import Last, Standing, Why, why
from webhooks.models import Attempt, Delivery


@dataclass(frozen=True)
class DeliveryPage:
    """What the templates need."""

    delivery: Delivery
    look: Look
    attempts: Sequence[Attempt]
    why: Why
    line: schedule.Line
    revision: str


def page_of(delivery: Delivery, now: datetime) -> DeliveryPage:
    """Everything about a delivery, as it stands ``now``."""
    newest_first = list(Attempt.objects.filter(delivery=delivery).order_by("-number"))
    return DeliveryPage(
        delivery=delivery,
        look=DeliveryRow(delivery).look,
        attempts=newest_first,
        why=why(_standing(delivery, newest_first)),
        line=_line(delivery, newest_first, now),
        revision=_revision(delivery, newest_first),
    )


def _standing(delivery: Delivery, newest_first: Sequence[Attempt]) -> Standing:
    ended = (attempt for attempt in newest_first if attempt.verdict)
    last = next(ended, None)
    return Standing(
        state=delivery.state,
        failure_reason=delivery.failure_reason,
        attempts=delivery.attempts,
        planned=delivery.schedule.attempts,
        flying=delivery.lease_until is not None,
        is_ping=delivery.is_ping,
        last=Last(last.number, last.verdict, last.status_code, last.error_kind) if last else None,
    )


def _line(delivery: Delivery, newest_first: Sequence[Attempt], now: datetime) -> schedule.Line:
    pending = delivery.state == Delivery.State.PENDING
    return schedule.draw(
        schedule.Facts(
            policy=delivery.schedule,
            begun_at=delivery.created_at,
            made=[attempts.made_of(attempt) for attempt in reversed(newest_first)],
            next_attempt_at=delivery.next_attempt_at,
            open=pending,
            waiting=pending,
            now=now,
        )
    )


def _revision(delivery: Delivery, newest_first: Sequence[Attempt]) -> str:
    """A digest of whatever on the page can change."""
    endpoint = delivery.endpoint
    return revision_of(
        deliveries.facts_of(delivery),
        delivery.failure_reason,
        [attempts.facts_of(attempt) for attempt in newest_first],
        (endpoint.enabled, endpoint.url, endpoint.header_names),
    )
