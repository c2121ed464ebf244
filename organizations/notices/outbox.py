"""The outbox: facts come in with their own transaction, mails go out by claim, send, record.

Contract of ``claim``: the notices of one mail are one person's, of one kind and organization; they now
have a lease, committed before anybody talks to a mail server. No two callers get the same one, and no
two mails of one person and kind are under way at once. Whoever holds the lease records what came of it.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction

from organizations.clock import database_now
from organizations.rules import roles
from organizations.rules.notices import GATHER_S, MAIL_LIMIT, SPACING_S, Kind, next_try_at

logger = logging.getLogger(__name__)

# Claims take turns (advisory lock): two of them would each find no mail of a person under way.
CLAIM_LOCK: Final = 0x6D61696C  # "mail"
# A mail takes at most MAIL_DEADLINE_S once connected, and connecting some 10 s for each address of the
# server. Twice that, and whoever has not recorded is taken for dead; the mail is sent once more.
LEASE_S: Final = 120

# One row a person and fact. Without a recipient the owners are meant. Who left, who was locked out and
# who does not want to know is not told.
TELL = """
INSERT INTO organizations_notice (organization_id, recipient_id, kind, fact, subject_id, facts, state,
                                  tries, next_try_at, error, channel, address)
SELECT f.organization_id, m.user_id, f.kind, f.fact, f.subject_id, f.facts, 'waiting',
       0, statement_timestamp() + make_interval(secs => %(gather_s)s), '', '', ''
  FROM unnest(%(organizations)s::uuid[], %(recipients)s::uuid[], %(kinds)s::text[],
              %(facts)s::text[], %(subjects)s::uuid[], %(contents)s::jsonb[])
       WITH ORDINALITY AS f(organization_id, recipient_id, kind, fact, subject_id, facts, place)
  JOIN organizations_membership m ON m.organization_id = f.organization_id
       AND (m.user_id = f.recipient_id OR f.recipient_id IS NULL AND m.role = %(owner)s)
  JOIN organizations_user u ON u.id = m.user_id AND u.is_active
 WHERE NOT f.kind = ANY(m.muted_notices)
 ORDER BY f.place
ON CONFLICT (recipient_id, fact) DO NOTHING
"""

ANYTHING_DUE = """
SELECT EXISTS (SELECT FROM organizations_notice WHERE next_try_at <= statement_timestamp())
    OR EXISTS (SELECT FROM organizations_notice WHERE lease_until < statement_timestamp())
"""

# The postman who had these died: whether the mail went out is unknown, so it is sent once more.
RELEASE_EXPIRED = """
UPDATE organizations_notice SET lease_until = NULL, next_try_at = statement_timestamp()
 WHERE lease_until < statement_timestamp()
"""

# What waits together goes together. After a failed try everything waits for the next, the newer facts
# too: a server that is away sees one try a wait, and gets one digest when it is back.
CLAIM = """
WITH waiting AS (
    SELECT recipient_id, organization_id, kind,
           coalesce(max(next_try_at) FILTER (WHERE tries > 0), min(next_try_at)) AS due_at
      FROM organizations_notice WHERE next_try_at IS NOT NULL GROUP BY 1, 2, 3
),
due AS (
    SELECT w.* FROM waiting w
     WHERE w.due_at <= statement_timestamp()
       AND NOT EXISTS (
           SELECT FROM organizations_notice f
            WHERE f.lease_until IS NOT NULL AND f.recipient_id = w.recipient_id
              AND f.organization_id = w.organization_id AND f.kind = w.kind)
       AND NOT EXISTS (
           SELECT FROM organizations_notice s
            WHERE s.state = 'sent' AND s.recipient_id = w.recipient_id
              AND s.organization_id = w.organization_id AND s.kind = w.kind
              AND s.settled_at > statement_timestamp() - make_interval(secs => %(spacing_s)s))
     ORDER BY w.due_at LIMIT 1
),
taken AS (
    SELECT n.id FROM organizations_notice n
      JOIN due USING (recipient_id, organization_id, kind)
     WHERE n.next_try_at IS NOT NULL
     ORDER BY n.id LIMIT %(limit)s FOR NO KEY UPDATE OF n SKIP LOCKED
),
leased AS (
    UPDATE organizations_notice n
       SET next_try_at = NULL, tries = n.tries + 1, mail_id = %(mail)s,
           lease_until = statement_timestamp() + make_interval(secs => %(lease_s)s)
      FROM taken WHERE n.id = taken.id
    RETURNING n.*
)
SELECT leased.id, leased.happened_at, leased.tries, leased.subject_id, leased.facts,
       leased.kind, o.name, u.email, u.is_active AND m.id IS NOT NULL
  FROM leased
  JOIN organizations_organization o ON o.id = leased.organization_id
  JOIN organizations_user u ON u.id = leased.recipient_id
  LEFT JOIN organizations_membership m
    ON m.organization_id = leased.organization_id AND m.user_id = leased.recipient_id
 ORDER BY leased.id
"""

RECORD_SENT = """
UPDATE organizations_notice
   SET state = 'sent', lease_until = NULL, error = '', channel = %(channel)s, address = %(address)s,
       settled_at = clock_timestamp()
 WHERE mail_id = %(mail)s AND lease_until IS NOT NULL
"""

RECORD_FAILED = """
UPDATE organizations_notice n
   SET lease_until = NULL, error = %(error)s, next_try_at = r.next_try_at,
       state = CASE WHEN r.next_try_at IS NULL THEN 'gave_up' ELSE 'waiting' END,
       settled_at = CASE WHEN r.next_try_at IS NULL THEN clock_timestamp() END
  FROM unnest(%(ids)s::bigint[], %(times)s::timestamptz[]) AS r(id, next_try_at)
 WHERE n.id = r.id AND n.mail_id = %(mail)s AND n.lease_until IS NOT NULL
"""


@dataclass(frozen=True)
class Fact:
    """Something that happened, to be told once to each person whom it concerns.

    ``name`` tells it from every other fact, however often it is told. Without a ``recipient_id`` the
    organization's owners are told. ``content`` is plain JSON, its texts fit for a mail.
    """

    organization_id: UUID
    recipient_id: UUID | None
    kind: Kind
    name: str
    subject_id: UUID
    content: dict[str, Any]


@dataclass(frozen=True)
class Told:
    """One notice of a mail."""

    id: int
    happened_at: datetime
    tries: int
    subject_id: UUID
    content: dict[str, Any]


@dataclass(frozen=True)
class Mail:
    """Notices that go to one person in one mail. ``reachable``: still a member who may sign in."""

    id: UUID
    kind: Kind
    organization_name: str
    address: str
    reachable: bool
    notices: Sequence[Told]


def tell(facts: Sequence[Fact]) -> int:
    """Put facts into the outbox, inside the transaction that makes them true; how many notices it took.

    One statement, however many they are.
    """
    if not facts:
        return 0
    with connection.cursor() as cursor:
        cursor.execute(
            TELL,
            {
                "gather_s": GATHER_S,
                "owner": roles.OWNER,
                "organizations": [fact.organization_id for fact in facts],
                "recipients": [fact.recipient_id for fact in facts],
                "kinds": [fact.kind.value for fact in facts],
                "facts": [fact.name for fact in facts],
                "subjects": [fact.subject_id for fact in facts],
                "contents": [json.dumps(fact.content) for fact in facts],
            },
        )
        return int(cursor.rowcount)


def anything_due() -> bool:
    """Whether a postman has something to look at."""
    with connection.cursor() as cursor:
        cursor.execute(ANYTHING_DUE)
        return bool(cursor.fetchone()[0])


def claim() -> Mail | None:
    """Take the notices of the mail that is due first; see the module for what is promised."""
    mail_id = uuid.uuid4()
    with transaction.atomic(), connection.cursor() as cursor:
        # A statement of its own: the claim's snapshot must be newer than the wait for the lock.
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [CLAIM_LOCK])
        cursor.execute(RELEASE_EXPIRED)
        cursor.execute(
            CLAIM,
            {"mail": mail_id, "limit": MAIL_LIMIT, "lease_s": LEASE_S, "spacing_s": SPACING_S},
        )
        rows = cursor.fetchall()
    if not rows:
        return None
    *_, kind, organization_name, address, reachable = rows[0]
    told = [
        Told(pk, happened_at, tries, subject_id, json.loads(content))
        for pk, happened_at, tries, subject_id, content, *_ in rows
    ]
    return Mail(mail_id, Kind(kind), organization_name, address, reachable, told)


def record_sent(mail: Mail, channel: str) -> None:
    """The mail server has taken it, or without one its page shows it: these notices are settled."""
    parameters = {"mail": mail.id, "channel": channel, "address": mail.address}
    _record(mail, RECORD_SENT, parameters)


def record_failed(mail: Mail, error: str, *, final: bool) -> None:
    """It was not taken: wait for the next try, or give up when it is ``final`` or too old."""
    now, tries = database_now(), max(told.tries for told in mail.notices)
    times = [None if final else next_try_at(tries, t.happened_at, now) for t in mail.notices]
    ids = [told.id for told in mail.notices]
    _record(mail, RECORD_FAILED, {"mail": mail.id, "error": error, "ids": ids, "times": times})


def _record(mail: Mail, statement: str, parameters: dict[str, Any]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        if cursor.rowcount < len(mail.notices):
            logger.warning("the lease of mail %s ran out before it was recorded", mail.id)
