"""What is counted at the end. Each of ``ZEROS`` must be nought."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from tests.chaos.patience import query, value
from tests.chaos.receivers import Post
from webhooks.rules.policies import PRESETS

# What is due and not claimed within this many seconds, with receivers that answer, is stuck.
STUCK_AFTER_S = 5

STUCK = f"""
SELECT count(*) FROM webhooks_delivery
 WHERE next_attempt_at < now() - interval '{STUCK_AFTER_S} s'
    OR lease_until < now() - interval '{STUCK_AFTER_S} s'
    OR (state = 'pending' AND next_attempt_at IS NULL AND lease_until IS NULL)
"""
WAITING = "SELECT count(*) FROM webhooks_delivery WHERE state = 'pending'"
OPEN_PAST_LEASE = """
SELECT count(*) FROM webhooks_attempt a JOIN webhooks_delivery d ON d.id = a.delivery_id
 WHERE a.finished_at IS NULL
   AND (d.lease_until IS NULL OR d.lease_until < now() OR a.number <> d.attempts)
"""
MISSING_NUMBERS = """
SELECT count(*) FROM webhooks_delivery d
 WHERE d.attempts <> (SELECT count(*) FROM webhooks_attempt a WHERE a.delivery_id = d.id)
"""
AFTER_THE_END = """
SELECT count(*) FROM webhooks_attempt a JOIN webhooks_delivery d ON d.id = a.delivery_id
 WHERE a.claimed_at > d.settled_at
"""
EARLY = "SELECT count(*) FROM webhooks_attempt WHERE started_at < due_at"
CONTRADICTIONS = """
SELECT count(*) FROM commands_command c JOIN webhooks_delivery d ON d.id = c.delivery_id
 WHERE NOT CASE d.state
       WHEN 'pending' THEN c.state = 'queued'
       WHEN 'delivered' THEN c.state IN ('delivered', 'acked', 'nacked', 'timed_out')
       WHEN 'failed' THEN c.state = 'failed'
       ELSE c.state = 'retracted' END
"""
OVERDUE = f"""
SELECT count(*) FROM commands_command
 WHERE state = 'delivered' AND ack_deadline < now() - interval '{STUCK_AFTER_S} s'
"""
OVER_THE_MAXIMUM = """
SELECT count(*) FROM webhooks_attempt a JOIN webhooks_delivery d ON d.id = a.delivery_id
 WHERE d.policy = %s AND a.number > %s
"""
# No receiver here refuses anything.
UNEXPLAINED = """
SELECT count(*) FROM webhooks_delivery d JOIN webhooks_endpoint e ON e.id = d.endpoint_id
 WHERE d.state = 'failed' AND d.policy = %s
   AND NOT (d.failure_reason = 'attempts_exhausted' AND d.attempts = %s)
   AND NOT (d.failure_reason = 'endpoint_disabled' AND NOT e.enabled)
"""
ROWS = """
SELECT 'msg_' || replace(e.id::text, '-', ''), a.number, e.body
  FROM webhooks_attempt a
  JOIN webhooks_delivery d ON d.id = a.delivery_id JOIN webhooks_event e ON e.id = d.event_id
"""


@dataclass(frozen=True)
class Evidence:
    """What the run leaves behind: the accepted work, the receivers' log, and what the faults saw."""

    accepted: Sequence[UUID]
    posts: Sequence[Post]
    left_behind: int
    left_open_by_a_stop: int


Count = Callable[[Evidence], int]


def _sql(statement: str) -> Count:
    return lambda _: int(value(statement))


def _lost(evidence: Evidence) -> int:
    known = {row[0] for row in query("SELECT id FROM webhooks_delivery")}
    return len(set(evidence.accepted) - known)


def _without_a_row(evidence: Evidence) -> int:
    rows = {(message, number) for message, number, _ in query(ROWS)}
    return len({(post.message_id, post.attempt) for post in evidence.posts} - rows)


def _more_than_rows(evidence: Evidence) -> int:
    counted = Counter((post.message_id, post.attempt) for post in evidence.posts)
    return sum(count - 1 for count in counted.values())


def _other_bytes(evidence: Evidence) -> int:
    bodies = {message: bytes(body) for message, _, body in query(ROWS)}
    return sum(post.body != bodies.get(post.message_id, post.body) for post in evidence.posts)


def _over_the_maximum(_: Evidence) -> int:
    return sum(value(OVER_THE_MAXIMUM, policy.name, policy.attempts) for policy in PRESETS.values())


def _failed_against_policy(_: Evidence) -> int:
    return sum(value(UNEXPLAINED, policy.name, policy.attempts) for policy in PRESETS.values())


ZEROS: dict[str, Count] = {
    "deliveries lost (accepted, no row)": _lost,
    "deliveries stuck (due, nobody takes them)": _sql(STUCK),
    "deliveries failed other than the policy says": _failed_against_policy,
    "attempts without their row in the count": _sql(MISSING_NUMBERS),
    "attempts open past their lease": _sql(OPEN_PAST_LEASE),
    "attempts left open by a SIGTERM": lambda evidence: evidence.left_open_by_a_stop,
    "attempts over the policy's maximum": _over_the_maximum,
    "attempts begun after the delivery had ended": _sql(AFTER_THE_END),
    "attempts started before their time": _sql(EARLY),
    "POSTs without an attempt row": _without_a_row,
    "POSTs more than attempt rows": _more_than_rows,
    "POSTs whose body differs from the frozen one": _other_bytes,
    "commands that contradict their delivery": _sql(CONTRADICTIONS),
    "commands past their deadline, not timed out": _sql(OVERDUE),
    "processes left behind by killed pools": lambda evidence: evidence.left_behind,
}


def count_zeros(evidence: Evidence) -> dict[str, int]:
    """How often each thing happened that must never happen."""
    return {what: count(evidence) for what, count in ZEROS.items()}


def still_waiting() -> int:
    """Deliveries that have not ended yet."""
    return int(value(WAITING))
