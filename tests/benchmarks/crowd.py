"""An organization after three months: a million commands and what belongs to them, written as rows.

Guards and foreign keys are lifted for it, by a superuser, on a database that nobody keeps: what is filled
in is history as it would stand there, one statement a table. Times go back in even steps, and ids with
them, as they do in life.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

import psycopg

from tests.plain_sql import Connection

DAYS: Final = 90
# Of the newest commands so many are under way, wait, or never began.
OPEN: Final = 2_000
ENDPOINTS: Final = 20
TABLES: Final = (
    "commands_command",
    "commands_commandevent",
    "organizations_auditentry",
    "organizations_notice",
    "webhooks_attempt",
    "webhooks_delivery",
    "webhooks_event",
)

ROWS = """
CREATE UNLOGGED TABLE page_row AS
SELECT n, at, uuidv7(at - now()) AS command, uuidv7(at - now()) AS event,
       uuidv7(at - now()) AS delivery,
       CASE WHEN state IN ('logged', 'refused') THEN 0 ELSE 1 + n %% 5 END AS attempts, state,
       (%(endpoints)s::uuid[])[1 + n %% %(targets)s] AS endpoint,
       (%(datasets)s::uuid[])[1 + n %% %(targets)s] AS dataset
  FROM (SELECT n, now() - (%(size)s - n) * %(step)s * interval '1 second' AS at,
               CASE WHEN n >= %(size)s - %(open)s
                    THEN (ARRAY['queued', 'delivered', 'logged', 'refused'])[1 + n %% 4]
                    WHEN n %% 100 < 1 THEN 'timed_out'
                    WHEN n %% 100 < 4 THEN 'failed'
                    WHEN n %% 100 < 6 THEN 'nacked'
                    WHEN n %% 100 < 7 THEN 'retracted'
                    ELSE 'acked' END AS state
          FROM generate_series(0, %(size)s - 1) AS n) numbered
"""

COMMANDS = """
INSERT INTO commands_command (id, organization_id, dataset_id, client_token, name, parameters, state,
                              issued_by_id, issued_at, dispatch_refusal, dispatched_at, ack_deadline,
                              delivery_id, delivered_at, early_outcome, settled_at, failure_reason,
                              retraction_reason)
SELECT command, %(organization)s, dataset, format('crowd-%%s', n),
       (ARRAY['dock', 'undock', 'set_speed', 'return_to_base', 'open_bay'])[1 + n %% 5],
       format('{"run":%%s,"seconds":30}', n), CASE state WHEN 'refused' THEN 'logged' ELSE state END,
       %(issuer)s, at, CASE state WHEN 'refused' THEN 'dataset_unarmed' ELSE '' END,
       CASE WHEN attempts > 0 THEN at END,
       CASE WHEN attempts > 0 THEN greatest(at + interval '5 minutes', CASE
            WHEN state IN ('queued', 'delivered') THEN now() + interval '1 hour' END) END,
       CASE WHEN attempts > 0 THEN delivery END,
       CASE WHEN state NOT IN ('queued', 'failed', 'logged', 'refused') THEN at END, '',
       CASE WHEN state NOT IN ('queued', 'delivered', 'logged', 'refused') THEN at END,
       CASE state WHEN 'failed' THEN 'attempts_exhausted' ELSE '' END, ''
  FROM page_row ORDER BY n
"""

EVENTS = """
INSERT INTO webhooks_event (id, organization_id, type, body, published, hops, created_at)
SELECT event, %(organization)s, 'command.dispatch', convert_to(format(
         '{"type":"command.dispatch","timestamp":"2026-01-01T00:00:00.000000Z","command":{"id":"%%s",'
         '"clientToken":"crowd-%%s","name":"dock","parameters":{"run":%%s,"seconds":30}}}',
         command, n, n), 'UTF8'), false, 0, at
  FROM page_row WHERE attempts > 0 ORDER BY n
"""

# One command in five has somebody who is told of it.
PUBLISHED = """
INSERT INTO webhooks_event (id, organization_id, type, body, published, place, hops, created_at)
SELECT uuidv7(at - now()), %(organization)s, 'command.' || state, convert_to(format(
         '{"id":"","type":"command.%%s","timestamp":"2026-01-01T00:00:00.000000Z",'
         '"data":{"command":{"id":"%%s"}}}', state, command), 'UTF8'),
       true, row_number() OVER (ORDER BY n), 0, at
  FROM page_row WHERE n %% 5 = 0 AND state NOT IN ('queued', 'logged', 'refused') ORDER BY n
"""

# One event in ten of those had a subscriber.
TOLD = """
INSERT INTO webhooks_delivery (id, organization_id, endpoint_id, event_id, is_ping, policy, state,
                               attempts, failure_reason, created_at, settled_at)
SELECT uuidv7(created_at - now()), organization_id, (%(endpoints)s::uuid[])[1], id, false, 'event',
       'delivered', 1, '', created_at, created_at
  FROM webhooks_event WHERE published AND place %% 10 = 0 ORDER BY place
"""

PLACES = "SELECT setval('webhooks_event_place', (SELECT max(place) FROM webhooks_event))"

DELIVERIES = """
INSERT INTO webhooks_delivery (id, organization_id, endpoint_id, event_id, command_id, is_ping, policy,
                               state, attempts, next_attempt_at, failure_reason, created_at, settled_at)
SELECT delivery, %(organization)s, endpoint, event, command, false, 'command',
       CASE state WHEN 'queued' THEN 'pending' WHEN 'failed' THEN 'failed' ELSE 'delivered' END,
       attempts, CASE state WHEN 'queued' THEN now() + interval '1 day' END,
       CASE state WHEN 'failed' THEN 'attempts_exhausted' ELSE '' END, at,
       CASE WHEN state <> 'queued' THEN at + attempts * interval '5 seconds' END
  FROM page_row WHERE attempts > 0 ORDER BY n
"""

# In the order of time, as they are made.
ATTEMPTS = """
INSERT INTO webhooks_attempt (delivery_id, endpoint_id, number, worker, due_at, claimed_at, started_at,
                              finished_at, duration_ms, verdict, status_code, error_kind, error,
                              response_excerpt, excerpt_truncated, retry_after, location)
SELECT delivery, endpoint, number, 'host:1', due, due, due, due + interval '40 ms', 40,
       CASE WHEN good THEN 'delivered' ELSE 'retry' END, CASE WHEN good THEN 200 ELSE 503 END,
       '', '', convert_to('not ready yet', 'UTF8'), false, '', ''
  FROM (SELECT delivery, endpoint, number, at + (number - 1) * interval '5 seconds' AS due,
               number = attempts AND state NOT IN ('queued', 'failed') AS good
          FROM page_row, generate_series(1, attempts) AS number
         UNION ALL
        SELECT id, endpoint_id, 1, created_at, true
          FROM webhooks_delivery WHERE policy = 'event') made
 ORDER BY due
"""

TIMELINE = """
INSERT INTO commands_commandevent (command_id, kind, at, from_state, to_state, reason, outcome, detail,
                                   user_id, via)
SELECT command, kind, at, '', '', '', '', '', %(issuer)s, 'api'
  FROM page_row, LATERAL unnest(CASE
         WHEN state = 'logged' THEN ARRAY['issued']
         WHEN state = 'refused' THEN ARRAY['issued', 'dispatch_refused']
         WHEN state = 'queued' THEN ARRAY['issued', 'dispatched']
         WHEN state IN ('delivered', 'failed') THEN ARRAY['issued', 'dispatched', state]
         ELSE ARRAY['issued', 'dispatched', 'delivered', state] END) AS kind
 ORDER BY n
"""

AUDIT = """
INSERT INTO organizations_auditentry (organization_id, user_id, at, via, act, target_type, target_id,
                                      before, after)
SELECT %(organization)s, %(issuer)s, at, 'api', act, kind,
       CASE kind WHEN 'command' THEN command ELSE endpoint END::text, '{}', '{}'
  FROM page_row, (VALUES ('command.issue', 'command', 1), ('command.dispatch', 'command', 1),
                         ('endpoint.edit', 'endpoint', 500)) AS line(act, kind, every)
 WHERE n %% every = 0 ORDER BY n
"""

NOTICES = """
INSERT INTO organizations_notice (organization_id, recipient_id, kind, fact, subject_id, facts,
                                  happened_at, state, tries, error, channel, address, settled_at)
SELECT %(organization)s, %(issuer)s, 'command_' || state, format('command:%%s', command), command,
       jsonb_build_object('name', 'dock', 'token', format('crowd-%%s', n), 'detail', '',
                          'reason', 'attempts_exhausted'),
       at, 'sent', 1, '', 'mail', 'operator@example.com', at
  FROM page_row WHERE state IN ('timed_out', 'failed', 'nacked') ORDER BY n
"""

STATEMENTS: Final = {
    "rows": ROWS,
    "commands": COMMANDS,
    "events": EVENTS,
    "published events": PUBLISHED,
    "places": PLACES,
    "deliveries": DELIVERIES,
    "deliveries of events": TOLD,
    "attempts": ATTEMPTS,
    "timelines": TIMELINE,
    "audit entries": AUDIT,
    "notices": NOTICES,
}


@dataclass(frozen=True)
class Crowd:
    """Whose rows they are."""

    organization: UUID
    issuer: UUID
    owner: int
    endpoints: list[UUID]
    datasets: list[UUID]


def fill(database_url: str, crowd: Crowd, size: int, told: Callable[[str], None]) -> None:
    """Write the rows of ``size`` commands, and say what is being written."""
    parameters: dict[str, Any] = {
        "size": size,
        "step": DAYS * 86_400 / size,
        "open": min(OPEN, size // 50),
        "organization": crowd.organization,
        "issuer": crowd.issuer,
        "endpoints": crowd.endpoints,
        "datasets": crowd.datasets,
        "targets": len(crowd.endpoints),
    }
    with psycopg.connect(_as_superuser(database_url), autocommit=True) as sql:
        with _unguarded(sql):
            for name, statement in STATEMENTS.items():
                told(name)
                sql.execute(statement.encode(), parameters if "%(" in statement else None)
        told("statistics")
        sql.execute("VACUUM (ANALYZE)")


@contextlib.contextmanager
def _unguarded(sql: Connection) -> Iterator[None]:
    for table in TABLES:
        sql.execute(f"ALTER TABLE {table} DISABLE TRIGGER ALL".encode())
    try:
        yield
    finally:
        for table in TABLES:
            sql.execute(f"ALTER TABLE {table} ENABLE TRIGGER ALL".encode())


def _as_superuser(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(
        parts._replace(netloc=parts.netloc.replace(f"{parts.username}@", "postgres@"))
    )
