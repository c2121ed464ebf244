"""What an operator should know at a glance: which commands need a person now, and how many stand where.

Every read here walks an index for a bounded way, however many commands there are, and none counts past
its bound: the page is asked for every few seconds, all day, on a wall.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from django.core.cache import cache

from commands.rules.states import State
from organizations import prepared
from organizations.ids import first_id_at
from organizations.models import Organization

# A command that timed out longer ago was somebody else's shift: it stays in the list of commands.
TIMED_OUT_FOR: Final = timedelta(hours=24)
# A deadline is about to pass in the last third of its time, at most this long before: a report that takes
# half of its time is nothing to be nervous about.
DEADLINE_WITHIN: Final = timedelta(minutes=2)
# Commands that each question looks at, and those of them that the page names.
REACH: Final = 100
SHOWN: Final = 5

# States that a command leaves again are counted whole, the others for commands of the last day.
UNDER_WAY: Final = (State.LOGGED, State.QUEUED, State.DELIVERED)
SETTLED: Final = (State.ACKED, State.NACKED, State.FAILED, State.TIMED_OUT, State.RETRACTED)
SETTLED_FOR: Final = timedelta(hours=24)
COUNTED_TO: Final = 10_000
# Numbers above a thousand are not read again for some seconds: nobody sees them move by one, and to count
# ten thousand takes a millisecond.
LARGE: Final = 1000
LARGE_KEPT_S: Final = 15

# The newest of the state: one that was dispatched long after its issue may be beyond the reach.
TIMED_OUT = """
SELECT 'timed_out' AS kind, id, settled_at AS at, count(*) OVER () AS total
  FROM (SELECT id, settled_at FROM commands_command
         WHERE organization_id = %(organization)s::uuid AND state = 'timed_out'
         ORDER BY id DESC LIMIT {reach}) newest
 WHERE settled_at >= %(timed_out_since)s::timestamptz
   AND NOT EXISTS (SELECT FROM commands_command again WHERE again.reissue_of_id = newest.id)
 ORDER BY at DESC LIMIT {shown}
"""

REFUSED = """
SELECT 'refused' AS kind, id, issued_at AS at, count(*) OVER () AS total
  FROM (SELECT id, issued_at FROM commands_command
         WHERE organization_id = %(organization)s::uuid
           AND state = 'logged' AND dispatch_refusal <> ''
         ORDER BY id DESC LIMIT {reach}) newest
 ORDER BY at DESC LIMIT {shown}
"""

# The deadlines of all organizations lie in one index, so the nearest may all be another's. But then this
# one has few commands that wait, and those are found by their state.
DEADLINES = """
SELECT 'deadlines' AS kind, id, ack_deadline AS at, count(*) OVER () AS total
  FROM ((SELECT id, dispatched_at, ack_deadline FROM commands_command
          WHERE organization_id = %(organization)s::uuid AND state = 'delivered'
          ORDER BY id DESC LIMIT {reach})
        UNION
        SELECT id, dispatched_at, ack_deadline
          FROM (SELECT id, organization_id, dispatched_at, ack_deadline FROM commands_command
                 WHERE state = 'delivered' AND ack_deadline < %(deadline_until)s::timestamptz
                 ORDER BY ack_deadline LIMIT {reach}) nearest
         WHERE organization_id = %(organization)s::uuid) waiting
 WHERE ack_deadline < least(%(deadline_until)s::timestamptz,
                            %(now)s::timestamptz + (ack_deadline - dispatched_at) / 3)
 ORDER BY at LIMIT {shown}
"""

# All three with one way to the database; then what a page says of the few that it names.
NEEDS = f"""
SELECT found.kind, command.id, command.name, command.client_token, dataset.name, found.at,
       CASE found.kind WHEN 'refused' THEN command.dispatch_refusal ELSE '' END, found.total
  FROM (({TIMED_OUT}) UNION ALL ({REFUSED}) UNION ALL ({DEADLINES})) found
  JOIN commands_command command ON command.id = found.id
  JOIN commands_dataset dataset ON dataset.id = command.dataset_id
 ORDER BY found.at
"""  # noqa: S608

COUNTS = """
SELECT wanted.name, counted.count
  FROM unnest(%(states)s::text[], %(first_ids)s::uuid[]) AS wanted(name, first_id)
 CROSS JOIN LATERAL (
    SELECT count(*) FROM (
        SELECT FROM commands_command
         WHERE organization_id = %(organization)s::uuid AND state = wanted.name
           AND id >= wanted.first_id
         LIMIT %(limit)s::int) capped) counted
"""


class Line(NamedTuple):
    """A command that is named; ``at`` is when it timed out, was issued, or has its deadline."""

    pk: UUID
    name: str
    client_token: str
    dataset: str
    at: datetime
    reason: str


@dataclass(frozen=True)
class Some:
    """The first of them, and how many there are: at least so many where they reach ``at_the_bound``."""

    lines: Sequence[Line]
    total: int

    @property
    def at_the_bound(self) -> bool:
        return self.total >= REACH


@dataclass(frozen=True)
class Waiting:
    """Commands that need a person now."""

    timed_out: Some
    refused: Some
    deadlines: Some


def needing_a_person(organization: Organization, now: datetime) -> Waiting:
    """Timed out and not taken care of, refused and still logged, or about to time out."""
    asked = {
        "organization": organization.pk,
        "now": now,
        "timed_out_since": now - TIMED_OUT_FOR,
        "deadline_until": now + DEADLINE_WITHIN,
    }
    found: dict[str, list[Line]] = {"timed_out": [], "refused": [], "deadlines": []}
    totals = dict.fromkeys(found, 0)
    for kind, *line, total in prepared.execute(_needs(REACH, SHOWN), asked):
        found[kind].append(Line(*line))
        totals[kind] = total
    # The newest first, but of what is to come the next.
    found["timed_out"].reverse()
    found["refused"].reverse()
    return Waiting(**{kind: Some(lines, totals[kind]) for kind, lines in found.items()})


@functools.cache
def _needs(reach: int, shown: int) -> str:
    """The bounds stand in the statement: with unknown ones the database would plan it anew each time, which
    takes longer than to run it.
    """
    return NEEDS.format(reach=reach, shown=shown)


def counts(organization: Organization, now: datetime) -> dict[State, int]:
    """Commands by state, none counted further than one above ``COUNTED_TO``."""
    key = f"overview-counts:{organization.pk}"
    kept: dict[str, int] = cache.get(key, {})
    states = [state.value for state in State if state not in kept]
    asked = {
        "organization": organization.pk,
        "states": states,
        "first_ids": [_first_id(State(state), now) for state in states],
        "limit": COUNTED_TO + 1,
    }
    counted: dict[str, int] = dict(prepared.execute(COUNTS, asked))
    large = {state: count for state, count in counted.items() if count > LARGE}
    if large and not kept:
        cache.set(key, large, LARGE_KEPT_S)
    return {state: (kept | counted)[state.value] for state in State}


def _first_id(state: State, now: datetime) -> UUID:
    return first_id_at(now - SETTLED_FOR) if state in SETTLED else UUID(int=0)
