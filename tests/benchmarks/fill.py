"""Rows by the thousand: commands as they are before, on and after their way.

One statement a table, and every guard stays in force: a command is logged, then queued, then delivered,
as in life. Only the foreign keys' checks are left out for what is history already, because they are
most of the work and say nothing about speed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from tests.benchmarks.scene import Scene, Target
from tests.plain_sql import Connection

# Far enough that nothing becomes due by itself.
FAR = "interval '30 days'"
# Rows a statement: large enough to be fast, small enough to show progress.
CHUNK = 50_000

_batches = itertools.count(1)

ROWS = """
INSERT INTO bench_row
SELECT %(batch)s, n, %(organization)s, %(issuer)s,
       (%(endpoints)s::uuid[])[1 + n %% %(targets)s], (%(datasets)s::uuid[])[1 + n %% %(targets)s],
       uuidv7(), uuidv7(), uuidv7()
  FROM generate_series(0, %(size)s - 1) AS n
"""

LOGGED = """
INSERT INTO commands_command (id, organization_id, dataset_id, client_token, name, parameters, state,
                              issued_by_id, issued_at, dispatch_refusal, early_outcome,
                              failure_reason, retraction_reason)
SELECT command, organization, dataset, format('bench-%%s-%%s', batch, n), 'hold_position',
       format('{"seconds":30,"run":%%s}', n), 'logged', issuer, now(), '', '', '', ''
  FROM bench_row WHERE batch = %(batch)s ORDER BY n
"""

EVENTS = """
INSERT INTO webhooks_event (id, organization_id, type, body, published, created_at)
SELECT event, organization, 'command.dispatch', convert_to(format(
         '{"type":"command.dispatch","timestamp":"2026-01-01T00:00:00.000000Z","command":{"id":"%%s",'
         '"clientToken":"bench-%%s-%%s","name":"hold_position","parameters":{"seconds":30,"run":%%s},'
         '"experimentId":"%%s","datasetId":"%%s","issuedAt":"2026-01-01T00:00:00.000000Z",'
         '"ackDeadline":"2026-01-02T00:00:00.000000Z"}}',
         command, batch, n, n, organization, dataset), 'UTF8'), false, now()
  FROM bench_row WHERE batch = %(batch)s ORDER BY n
"""

DELIVERIES = f"""
INSERT INTO webhooks_delivery (id, organization_id, endpoint_id, event_id, command_id, is_ping, policy,
                               state, attempts, next_attempt_at, failure_reason, created_at)
SELECT delivery, organization, endpoint, event, command, false, 'command',
       'pending', 0, now() + {FAR}, '', now()
  FROM bench_row WHERE batch = %(batch)s ORDER BY n
"""

QUEUED = """
UPDATE commands_command c
   SET state = 'queued', dispatched_at = now(), ack_deadline = now() + interval '1 day',
       delivery_id = r.delivery
  FROM bench_row r WHERE r.batch = %(batch)s AND c.id = r.command
"""

TIMELINE = """
INSERT INTO commands_commandevent (command_id, kind, at, from_state, to_state, reason, outcome, detail,
                                   user_id, via)
SELECT r.command, line.kind, now(), line.before, line.after, '', '', '', r.issuer, 'api'
  FROM bench_row r, (VALUES %(lines)s) AS line(kind, before, after)
 WHERE r.batch = %(batch)s ORDER BY r.n
"""

ATTEMPTS = """
INSERT INTO webhooks_attempt (delivery_id, endpoint_id, number, worker, due_at, claimed_at, started_at,
                              finished_at, duration_ms, verdict, status_code, phase, error_kind, error,
                              response_excerpt, excerpt_truncated, retry_after, location)
SELECT delivery, endpoint, 1, 'a worker of the past', now(), now(), now(), now(), 5,
       %(verdict)s, %(status)s, 'body', '', '', '{}'::bytea, false, '', ''
  FROM bench_row WHERE batch = %(batch)s ORDER BY n
"""

DELIVERIES_DELIVERED = """
UPDATE webhooks_delivery d
   SET state = 'delivered', attempts = 1, next_attempt_at = NULL, settled_at = now()
  FROM bench_row r WHERE r.batch = %(batch)s AND d.id = r.delivery
"""

DELIVERIES_ATTEMPTED = """
UPDATE webhooks_delivery d SET attempts = 1
  FROM bench_row r WHERE r.batch = %(batch)s AND d.id = r.delivery
"""

COMMANDS_DELIVERED = """
UPDATE commands_command c SET state = 'delivered', delivered_at = now()
  FROM bench_row r WHERE r.batch = %(batch)s AND c.id = r.command
"""

COMMANDS_ACKED = """
UPDATE commands_command c SET state = 'acked', settled_at = now()
  FROM bench_row r WHERE r.batch = %(batch)s AND c.id = r.command
"""

DUE = """
UPDATE webhooks_delivery d SET next_attempt_at = clock_timestamp()
  FROM bench_row r WHERE r.batch = %(batch)s AND r.n >= %(first)s AND r.n < %(end)s
   AND d.id = r.delivery
"""

DISPATCH_LINES = "('issued', '', 'logged'), ('dispatched', 'logged', 'queued')"
WHOLE_LINES = (
    f"{DISPATCH_LINES}, ('delivered', 'queued', 'delivered'), ('acked', 'delivered', 'acked')"
)


@dataclass(frozen=True)
class Batch:
    """Rows that were made together."""

    number: int
    size: int


def logged(sql: Connection, scene: Scene, targets: Sequence[Target], size: int) -> Batch:
    """Commands that wait to be dispatched."""
    batch = _rows(sql, scene, targets, size)
    _run(sql, batch, LOGGED)
    return batch


def queued(sql: Connection, scene: Scene, targets: Sequence[Target], size: int) -> Batch:
    """Commands whose deliveries are due in a month, unless ``make_due`` says otherwise."""
    batch = _rows(sql, scene, targets, size)
    with sql.transaction():
        _run(sql, batch, LOGGED, EVENTS, DELIVERIES, QUEUED, _timeline(DISPATCH_LINES))
    return batch


def make_due(sql: Connection, batch: Batch, first: int = 0, end: int | None = None) -> None:
    """Make the rows from ``first`` to before ``end`` due now, and wake the engine."""
    which = {"batch": batch.number, "first": first, "end": batch.size if end is None else end}
    with sql.transaction():
        sql.execute(DUE, which)
        sql.execute("SELECT pg_notify('webhooks_due', '')")


def acknowledged(sql: Connection, scene: Scene, targets: Sequence[Target], size: int) -> None:
    """History: commands that were delivered by one attempt and acknowledged. For a superuser."""
    attempts = ATTEMPTS.replace("%(verdict)s", "'delivered'").replace("%(status)s", "200")
    settled = (attempts, DELIVERIES_DELIVERED, COMMANDS_DELIVERED, COMMANDS_ACKED)
    _history(sql, scene, targets, size, (*settled, _timeline(WHOLE_LINES)))


def waiting(sql: Connection, scene: Scene, targets: Sequence[Target], size: int) -> None:
    """Commands whose first attempt failed and whose next is far away. For a superuser."""
    attempts = ATTEMPTS.replace("%(verdict)s", "'retry'").replace("%(status)s", "503")
    moved = (attempts, DELIVERIES_ATTEMPTED)
    _history(sql, scene, targets, size, (*moved, _timeline(DISPATCH_LINES)))


def _history(
    sql: Connection, scene: Scene, targets: Sequence[Target], size: int, then: tuple[str, ...]
) -> None:
    for first in range(0, size, CHUNK):
        with sql.transaction():
            sql.execute("SET LOCAL session_replication_role = replica")
            batch = _rows(sql, scene, targets, min(CHUNK, size - first))
            _run(sql, batch, LOGGED, EVENTS, DELIVERIES, QUEUED, *then)
    tidy(sql)


def tidy(sql: Connection) -> None:
    """What autovacuum would have done long ago."""
    sql.execute("VACUUM (ANALYZE)")


def _rows(sql: Connection, scene: Scene, targets: Sequence[Target], size: int) -> Batch:
    batch = Batch(next(_batches), size)
    rows = {
        "batch": batch.number,
        "size": size,
        "organization": scene.organization,
        "issuer": scene.issuer,
        "endpoints": [target.endpoint for target in targets],
        "datasets": [target.dataset for target in targets],
        "targets": len(targets),
    }
    sql.execute(ROWS, rows)
    return batch


def _run(sql: Connection, batch: Batch, *statements: str) -> None:
    for statement in statements:
        sql.execute(statement.encode(), {"batch": batch.number})


def _timeline(lines: str) -> str:
    return TIMELINE.replace("%(lines)s", lines)
