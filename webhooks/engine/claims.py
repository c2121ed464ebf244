"""The SQL that takes due deliveries. The only place where an attempt begins.

Contract of ``claim``: each returned delivery was pending, due, and of an enabled endpoint (a ping: of any
that is not archived); it now has a lease and its attempt row, committed before anybody sends a byte. No
two callers get the same one.
Endpoints take turns: whoever has fewer attempts in flight comes first, also across claims, so a backlog
delays only itself. An endpoint has at most ``max_in_flight`` of them, and it earns that by answering:
one that has never answered, or gave no answer the last time, gets few at a time. So a receiver that
hangs holds few threads, however long its backlog. Receivers that do answer, and take their time, could
hold all of them: the last threads of a worker are for endpoints that have nothing in flight.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction

from organizations import prepared
from webhooks.policies import started_with
from webhooks.rules.policies import Policy

# Claims take turns (advisory lock), otherwise two of them would each count the attempts in flight
# before either added to them. A claim takes a millisecond or two, so the turns cost nothing.
CLAIM_LOCK = 0x636C61696D  # "claim"
# A process that is suspended or cut off while it holds the lock holds up all others. It has nothing to do
# there but to send the next statement: the server ends its session after this long a silence.
CLAIM_SILENCE = "3s"
TAKE_TURN = """
SELECT set_config('idle_in_transaction_session_timeout', %s, true), pg_advisory_xact_lock(%s)
"""

# Endpoints with work are found by skipping through the partial index of due deliveries, one probe an
# endpoint, never by reading a backlog. `due` then takes from each no more than it has room for. It compares
# pairs, and `last` asks for a range with one endpoint in it, because with a plain equality the planner may
# walk the backlog, or the newest attempts, of all endpoints.
CLAIM = """
WITH RECURSIVE candidate AS (
    (SELECT endpoint_id, next_attempt_at AS earliest FROM webhooks_delivery
      WHERE next_attempt_at IS NOT NULL ORDER BY endpoint_id, next_attempt_at LIMIT 1)
    UNION ALL
    SELECT following.endpoint_id, following.next_attempt_at
      FROM candidate CROSS JOIN LATERAL (
        SELECT d.endpoint_id, d.next_attempt_at FROM webhooks_delivery d
         WHERE d.next_attempt_at IS NOT NULL AND d.endpoint_id > candidate.endpoint_id
         ORDER BY d.endpoint_id, d.next_attempt_at LIMIT 1) following
),
open AS (
    SELECT e.id AS endpoint_id, e.enabled, flying.count AS in_flight,
           least(coalesce(e.max_in_flight, %(max_in_flight)s),
                 CASE WHEN last.answered THEN NULL ELSE %(unproven)s END)
           - flying.count AS room
      FROM candidate JOIN webhooks_endpoint e ON e.id = candidate.endpoint_id
      LEFT JOIN LATERAL (
        SELECT a.status_code IS NOT NULL AS answered FROM webhooks_attempt a
         WHERE a.endpoint_id BETWEEN e.id AND e.id
           AND a.finished_at IS NOT NULL AND a.verdict <> 'lost'
         ORDER BY a.endpoint_id, a.id DESC LIMIT 1) last ON true
     CROSS JOIN LATERAL (
        SELECT count(*) FROM webhooks_delivery d
         WHERE d.endpoint_id = e.id AND d.lease_until IS NOT NULL) flying
     WHERE candidate.earliest <= statement_timestamp() AND e.archived_at IS NULL
),
due AS (
    SELECT d.id, d.next_attempt_at, open.in_flight
           + row_number() OVER (PARTITION BY open.endpoint_id ORDER BY d.next_attempt_at) AS turn
      FROM open CROSS JOIN LATERAL (
        SELECT id, next_attempt_at FROM webhooks_delivery
         WHERE (endpoint_id, next_attempt_at) >= (open.endpoint_id, '-infinity'::timestamptz)
           AND (endpoint_id, next_attempt_at) <= (open.endpoint_id, statement_timestamp())
           AND next_attempt_at IS NOT NULL AND (open.enabled OR is_ping)
         ORDER BY endpoint_id, next_attempt_at
         LIMIT greatest(least(open.room, %(limit)s), 0)
           FOR NO KEY UPDATE SKIP LOCKED) d
),
placed AS (
    SELECT id, next_attempt_at AS due_at, turn,
           row_number() OVER (ORDER BY turn, next_attempt_at) AS place FROM due
),
taken AS (
    SELECT id, due_at FROM placed
     WHERE place <= CASE WHEN turn = 1 THEN %(limit)s ELSE %(limit)s - %(reserve)s END
),
leased AS (
    UPDATE webhooks_delivery d
       SET next_attempt_at = NULL, attempts = d.attempts + 1,
           lease_until = statement_timestamp() + make_interval(secs => %(lease_s)s)
      FROM taken WHERE d.id = taken.id
    RETURNING d.id, d.endpoint_id, d.event_id, d.policy, d.policy_terms, d.attempts, taken.due_at
),
attempt AS (
    INSERT INTO webhooks_attempt (delivery_id, endpoint_id, number, worker, due_at, claimed_at,
                                  verdict, phase, error_kind, error, response_excerpt, excerpt_truncated,
                                  retry_after, location)
    SELECT id, endpoint_id, attempts, %(worker)s, due_at, statement_timestamp(),
           '', '', '', '', ''::bytea, false, '', '' FROM leased
    RETURNING id, delivery_id, claimed_at
)
SELECT attempt.id, leased.id, leased.endpoint_id, leased.policy, leased.policy_terms, leased.attempts,
       attempt.claimed_at, event.id, event.type, endpoint.url, event.body,
       ARRAY(SELECT s.ciphertext FROM webhooks_endpointsecret s
              WHERE s.endpoint_id = endpoint.id
                AND (s.expires_at IS NULL OR s.expires_at > statement_timestamp())
              ORDER BY s.created_at DESC, s.id DESC),
       endpoint.headers_ciphertext, CASE WHEN event.published THEN event.hops END
  FROM leased
  JOIN attempt ON attempt.delivery_id = leased.id
  JOIN webhooks_event event ON event.id = leased.event_id
  JOIN webhooks_endpoint endpoint ON endpoint.id = leased.endpoint_id
 ORDER BY leased.due_at
"""

# Deliveries whose worker has not recorded by the end of its lease, with their open attempts.
EXPIRED = """
SELECT a.id, d.id, d.endpoint_id, d.policy, d.policy_terms, a.number, statement_timestamp()
  FROM webhooks_delivery d
  JOIN webhooks_attempt a ON a.delivery_id = d.id AND a.number = d.attempts
 WHERE d.lease_until < statement_timestamp()
 ORDER BY d.lease_until LIMIT %(limit)s
"""

# Leases that ran out with no attempt open. The engine leaves none; one made by hand, or by a restored
# backup, must not hold its delivery for ever.
RELEASE_ORPHANS = """
UPDATE webhooks_delivery d
   SET lease_until = NULL,
       next_attempt_at = CASE WHEN d.state = 'pending' THEN statement_timestamp() END
 WHERE d.lease_until < statement_timestamp()
   AND NOT EXISTS (SELECT FROM webhooks_attempt a
                    WHERE a.delivery_id = d.id AND a.number = d.attempts AND a.finished_at IS NULL)
RETURNING d.id
"""

# Seconds until the next delivery is due (negative: since when), NULL when none waits.
NEXT_DUE = """
SELECT extract(epoch FROM min(next_attempt_at) - clock_timestamp())::float8
  FROM webhooks_delivery WHERE next_attempt_at IS NOT NULL
"""


@dataclass(frozen=True)
class Claimed:
    """An attempt that must now be made: what to send, where, signed with what."""

    # This process's monotonic clock at ``claimed_at``, to within the time a statement travels.
    claimed_monotonic: float
    attempt_id: int
    delivery_id: UUID
    endpoint_id: UUID
    policy: Policy
    number: int
    claimed_at: datetime
    event_id: UUID
    event_type: str
    url: str
    body: bytes
    secret_ciphertexts: list[str]
    headers_ciphertext: str
    hops: int | None  # of a published event


@dataclass(frozen=True)
class Expired:
    """An attempt whose lease ran out: nobody knows what came of it."""

    attempt_id: int
    delivery_id: UUID
    endpoint_id: UUID
    policy: Policy
    number: int
    noticed_at: datetime


def claim(limit: int, worker: str, reserve: int = 0) -> list[Claimed]:
    """Take up to ``limit`` due deliveries for ``worker``; see the module for what is promised.

    The last ``reserve`` of them are for endpoints with nothing in flight.
    """
    with transaction.atomic():
        # A statement of its own: the claim's snapshot must be newer than the wait for the lock.
        prepared.execute(TAKE_TURN, [CLAIM_SILENCE, CLAIM_LOCK])
        claimed_monotonic = time.monotonic()
        rows = prepared.execute(CLAIM, parameters(limit, worker, reserve))
    return [Claimed(claimed_monotonic, *_with_policy(*row)) for row in rows]


def parameters(limit: int, worker: str, reserve: int = 0) -> dict[str, int | str]:
    """What ``CLAIM`` is run with, under the settings in force."""
    return {
        "limit": limit,
        "reserve": reserve,
        "worker": worker,
        "lease_s": settings.LEASE_S,
        "max_in_flight": settings.ENDPOINT_MAX_IN_FLIGHT,
        "unproven": settings.ENDPOINT_UNPROVEN_IN_FLIGHT,
    }


def expired(limit: int) -> list[Expired]:
    """Attempts in flight whose lease has run out, the oldest first. Takes no locks."""
    rows = prepared.execute(EXPIRED, {"limit": limit})
    return [Expired(*_with_policy(*row)) for row in rows]


def _with_policy(
    attempt_id: int,
    delivery_id: UUID,
    endpoint_id: UUID,
    policy: str,
    terms: str | None,
    *rest: Any,
) -> tuple[Any, ...]:
    """The row with the policy that the delivery started with in the place of its name and terms."""
    return attempt_id, delivery_id, endpoint_id, started_with(policy, terms), *rest


def hold() -> None:
    """Let claims under way end, and no other begin before this transaction ends. What it changes of an
    endpoint then holds for every attempt that begins after it.

    Call it last: it holds up every worker.
    """
    with connection.cursor() as cursor:
        cursor.execute(TAKE_TURN, [CLAIM_SILENCE, CLAIM_LOCK])


def release_orphans() -> int:
    """Have deliveries wait again whose lease ran out without an attempt; how many."""
    return len(prepared.execute(RELEASE_ORPHANS))


def seconds_until_due() -> float | None:
    """Seconds until the next delivery is due, negative when it already is, None when none waits."""
    with connection.cursor() as cursor:
        cursor.execute(NEXT_DUE)
        row = cursor.fetchone()
    due: float | None = row[0]
    return due
