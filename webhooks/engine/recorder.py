"""Records what came of attempts: the third step, in batches, one short transaction each.

Only the holder of an attempt records it: an attempt that was closed meanwhile (its worker slept past
its lease and the attempt was given up as lost) takes nothing more, whoever comes with a result.

Rows are always locked in this order, here and in every service: dataset, endpoint, delivery, command.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction

from organizations import prepared
from webhooks import endpoints
from webhooks.models import Delivery, Endpoint
from webhooks.rules.policies import PING, Policy
from webhooks.rules.verdicts import (
    Delivered,
    Failed,
    Next,
    Verdict,
    Waiting,
    what_follows,
)
from webhooks.signals import Settlement, deliveries_settled

logger = logging.getLogger(__name__)

LOCK_ENDPOINTS = """
SELECT id FROM webhooks_endpoint WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE
"""

LOCK_DELIVERIES = """
SELECT d.id, d.state, d.command_id, e.enabled
  FROM webhooks_delivery d JOIN webhooks_endpoint e ON e.id = d.endpoint_id
 WHERE d.id = ANY(%s) ORDER BY d.id FOR NO KEY UPDATE OF d
"""

CLOSE_ATTEMPTS = """
UPDATE webhooks_attempt a
   SET started_at = r.started_at, finished_at = r.finished_at, duration_ms = r.duration_ms,
       verdict = r.verdict, status_code = r.status_code,
       phase = r.phase, error_kind = r.error_kind,
       error = r.error, response_excerpt = r.response_excerpt,
       excerpt_truncated = r.excerpt_truncated, retry_after = r.retry_after,
       location = r.location, next_attempt_at = r.next_attempt_at
  FROM unnest(%s::bigint[], %s::timestamptz[], %s::timestamptz[], %s::int[], %s::text[],
              %s::smallint[], %s::text[], %s::text[], %s::text[], %s::bytea[], %s::boolean[], %s::text[],
              %s::text[], %s::timestamptz[])
       AS r(id, started_at, finished_at, duration_ms, verdict, status_code, phase, error_kind, error,
            response_excerpt, excerpt_truncated, retry_after, location, next_attempt_at)
 WHERE a.id = r.id AND a.finished_at IS NULL
RETURNING a.id
"""

MOVE_DELIVERIES = """
UPDATE webhooks_delivery d
   SET lease_until = NULL,
       state = CASE WHEN d.state = 'pending' THEN r.state ELSE d.state END,
       failure_reason = CASE WHEN d.state = 'pending' THEN r.failure_reason
                             ELSE d.failure_reason END,
       next_attempt_at = CASE WHEN d.state = 'pending' THEN r.next_attempt_at END,
       settled_at = CASE WHEN d.state = 'pending' THEN r.settled_at ELSE d.settled_at END
  FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::timestamptz[], %s::timestamptz[])
       AS r(id, state, failure_reason, next_attempt_at, settled_at)
 WHERE d.id = r.id
"""


@dataclass(frozen=True)
class Outcome:
    """What came of one attempt, decided but not yet recorded. Times are the database's clock."""

    attempt_id: int
    delivery_id: UUID
    endpoint_id: UUID
    policy: Policy
    number: int
    verdict: Verdict
    finished_at: datetime
    started_at: datetime | None = None
    duration_ms: int | None = None
    status_code: int | None = None
    phase: str = ""
    error_kind: str = ""
    error: str = ""
    response_excerpt: bytes = b""
    excerpt_truncated: bool = False
    retry_after: str = ""
    location: str = ""


@dataclass(frozen=True)
class _Held:
    """A delivery as it stands under our lock."""

    state: str
    command_id: UUID | None
    endpoint_enabled: bool


def record(outcomes: Sequence[Outcome]) -> int:
    """Record a batch in one transaction; how many attempts it closed. The rest had lost their lease.

    Closes attempts, moves their deliveries on, judges the endpoints that failed, and tells the layers
    above what settled. Everything commits together or not at all, so a batch can simply be repeated.
    """
    with transaction.atomic():
        failing = {o.endpoint_id for o in outcomes if o.verdict != Verdict.DELIVERED}
        _lock_endpoints(failing)
        held = _lock_deliveries(outcomes)
        following = {o.attempt_id: _follow(o, held[o.delivery_id]) for o in outcomes}
        closed = _close_attempts(outcomes, following)
        ours = [o for o in outcomes if o.attempt_id in closed]
        _move_deliveries(ours, following)
        settled = _settlements(ours, following, held)
        settled += _judge({o.endpoint_id for o in ours if _counts(o)})
        if settled:
            deliveries_settled.send(sender=Delivery, settlements=settled)
    if len(closed) < len(outcomes):
        logger.warning("%d results came after their lease", len(outcomes) - len(closed))
    return len(closed)


def _lock_endpoints(ids: set[UUID]) -> None:
    """Failures of one endpoint take turns: each sees all before it, and the rule fires once.

    It also orders a retry against the disabling of its endpoint: no delivery is left waiting there.
    """
    if ids:
        endpoints.go_first(ids)
        prepared.execute(LOCK_ENDPOINTS, [list(ids)])


def _lock_deliveries(outcomes: Sequence[Outcome]) -> dict[UUID, _Held]:
    rows = prepared.execute(LOCK_DELIVERIES, [[o.delivery_id for o in outcomes]])
    return {row[0]: _Held(*row[1:]) for row in rows}


def _follow(outcome: Outcome, held: _Held) -> Next | None:
    """What follows for the delivery; None where it was cancelled and the attempt is only recorded."""
    if held.state != Delivery.State.PENDING:
        return None
    return what_follows(
        outcome.policy,
        outcome.number,
        outcome.verdict,
        outcome.finished_at,
        held.endpoint_enabled,
    )


def _close_attempts(outcomes: Sequence[Outcome], following: dict[int, Next | None]) -> set[int]:
    rows = [
        (
            o.attempt_id,
            o.started_at,
            o.finished_at,
            o.duration_ms,
            o.verdict.value,
            o.status_code,
            str(o.phase),
            o.error_kind,
            o.error,
            o.response_excerpt,
            o.excerpt_truncated,
            o.retry_after,
            o.location,
            _next_attempt_at(following[o.attempt_id]),
        )
        for o in outcomes
    ]
    return {row[0] for row in prepared.execute(CLOSE_ATTEMPTS, prepared.columns(rows))}


def _move_deliveries(outcomes: Sequence[Outcome], following: dict[int, Next | None]) -> None:
    rows = [
        (
            o.delivery_id,
            _state(following[o.attempt_id]),
            _failure_reason(following[o.attempt_id]),
            _next_attempt_at(following[o.attempt_id]),
            None if isinstance(following[o.attempt_id], Waiting) else o.finished_at,
        )
        for o in outcomes
    ]
    if rows:
        prepared.execute(MOVE_DELIVERIES, prepared.columns(rows))


def _settlements(
    outcomes: Sequence[Outcome],
    following: dict[int, Next | None],
    held: dict[UUID, _Held],
) -> list[Settlement]:
    return [
        Settlement(
            delivery_id=o.delivery_id,
            command_id=held[o.delivery_id].command_id,
            state=_state(following[o.attempt_id]),
            failure_reason=_failure_reason(following[o.attempt_id]),
            at=o.finished_at,
        )
        for o in outcomes
        if isinstance(following[o.attempt_id], Delivered | Failed)
    ]


def _counts(outcome: Outcome) -> bool:
    """Whether it is a failure that says something about the endpoint."""
    return outcome.verdict in (Verdict.RETRY, Verdict.FAIL) and outcome.policy != PING


def _judge(endpoint_ids: set[UUID]) -> list[Settlement]:
    """Disable the endpoints that have now failed too often; the deliveries that this ended."""
    settled: list[Settlement] = []
    if not endpoint_ids:
        return settled
    enabled = Endpoint.objects.filter(pk__in=endpoint_ids, enabled=True).order_by("pk")
    for endpoint_id, health in endpoints.health_of(enabled).items():
        if health.failed_too_often:
            failures = health.consecutive_failures
            settled += endpoints.disable_locked(endpoint_id, f"failed_{failures}_times_in_a_row")
            logger.warning("endpoint %s disabled after %d failures", endpoint_id, failures)
    return settled


def _state(following: Next | None) -> str:
    match following:
        case Delivered():
            return Delivery.State.DELIVERED
        case Failed():
            return Delivery.State.FAILED
        case _:
            return Delivery.State.PENDING


def _failure_reason(following: Next | None) -> str:
    return following.reason.value if isinstance(following, Failed) else ""


def _next_attempt_at(following: Next | None) -> datetime | None:
    return following.next_attempt_at if isinstance(following, Waiting) else None
