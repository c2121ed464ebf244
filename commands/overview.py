"""What an operator should know at a glance: which commands need a person now, and how many stand where.

Every read here walks an index for a bounded way, however many commands there are, and none counts past
its bound: the page is asked for every few seconds, all day, on a wall.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
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
REACH: Final = 500
SHOWN: Final = 5

# States that a command leaves again are counted whole, the others for commands of the last day.
UNDER_WAY: Final = (State.LOGGED, State.QUEUED, State.DELIVERED)
SETTLED: Final = (State.ACKED, State.NACKED, State.FAILED, State.TIMED_OUT, State.RETRACTED)
SETTLED_FOR: Final = timedelta(hours=24)
COUNTED_TO: Final = 10_000
# Beyond that it is not counted again for a while: reading ten thousand entries takes a millisecond.
BEYOND_FOR_S: Final = 30

_LINE = """
SELECT line.id, line.name, line.client_token, dataset.name, line.at, line.reason, line.total
  FROM ({}) line JOIN commands_dataset dataset ON dataset.id = line.dataset_id ORDER BY place
"""

# The newest of the state; who was issued long before it was dispatched may be beyond the reach.
TIMED_OUT = _LINE.format("""
    SELECT newest.*, settled_at AS at, '' AS reason, count(*) OVER () AS total,
           row_number() OVER (ORDER BY settled_at DESC) AS place
      FROM (SELECT * FROM commands_command
             WHERE organization_id = %(organization)s::uuid AND state = 'timed_out'
             ORDER BY id DESC LIMIT %(reach)s::int) newest
     WHERE settled_at >= %(since)s::timestamptz
       AND NOT EXISTS (SELECT FROM commands_command again WHERE again.reissue_of_id = newest.id)
     ORDER BY place LIMIT %(shown)s::int
""")

REFUSED = _LINE.format("""
    SELECT newest.*, issued_at AS at, dispatch_refusal AS reason, count(*) OVER () AS total,
           row_number() OVER (ORDER BY id DESC) AS place
      FROM (SELECT * FROM commands_command
             WHERE organization_id = %(organization)s::uuid
               AND state = 'logged' AND dispatch_refusal <> ''
             ORDER BY id DESC LIMIT %(reach)s::int) newest
     ORDER BY place LIMIT %(shown)s::int
""")

# The deadlines of all organizations lie in one index, so the nearest may all be another's. But then this
# one has few commands that wait, and those are found by their state.
DEADLINES = _LINE.format("""
    SELECT command.*, ack_deadline AS at, '' AS reason, total, place
      FROM (SELECT id, count(*) OVER () AS total, row_number() OVER (ORDER BY ack_deadline) AS place
              FROM (SELECT id, dispatched_at, ack_deadline
                      FROM (SELECT * FROM commands_command
                             WHERE organization_id = %(organization)s::uuid AND state = 'delivered'
                             ORDER BY id DESC LIMIT %(reach)s::int) waiting
                    UNION
                    SELECT id, dispatched_at, ack_deadline
                      FROM (SELECT * FROM commands_command
                             WHERE state = 'delivered' AND ack_deadline < %(until)s::timestamptz
                             ORDER BY ack_deadline LIMIT %(reach)s::int) nearest
                     WHERE organization_id = %(organization)s::uuid) candidate
             WHERE ack_deadline < least(
                   %(until)s::timestamptz,
                   %(now)s::timestamptz + (ack_deadline - dispatched_at) / 3)
             ORDER BY place LIMIT %(shown)s::int) soon
      JOIN commands_command command USING (id)
""")

COUNTS = """
SELECT wanted.state, counted.count
  FROM unnest(%(states)s::text[], %(first_ids)s::uuid[]) AS wanted(state, first_id)
 CROSS JOIN LATERAL (
    SELECT count(*) FROM (
        SELECT FROM commands_command c
         WHERE c.organization_id = %(organization)s::uuid AND c.state = wanted.state
           AND c.id >= wanted.first_id
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
    return Waiting(
        timed_out=_some(TIMED_OUT, organization, since=now - TIMED_OUT_FOR),
        refused=_some(REFUSED, organization),
        deadlines=_some(DEADLINES, organization, now=now, until=now + DEADLINE_WITHIN),
    )


def _some(sql: str, organization: Organization, **bounds: Any) -> Some:
    asked = {"organization": organization.pk, "reach": REACH, "shown": SHOWN, **bounds}
    rows = prepared.execute(sql, asked)
    return Some([Line(*line) for *line, _ in rows], rows[0][-1] if rows else 0)


def counts(organization: Organization, now: datetime) -> dict[State, int]:
    """Commands by state, none counted further than one above ``COUNTED_TO``."""
    key = f"overview-beyond:{organization.pk}"
    beyond: list[str] = cache.get(key, [])
    states = [state for state in State if state not in beyond]
    asked = {
        "organization": organization.pk,
        "states": [state.value for state in states],
        "first_ids": [_first_id(state, now) for state in states],
        "limit": COUNTED_TO + 1,
    }
    counted = dict(prepared.execute(COUNTS, asked))
    if not beyond and (found := [state for state in counted if counted[state] > COUNTED_TO]):
        cache.set(key, found, BEYOND_FOR_S)
    return {state: counted.get(state.value, COUNTED_TO + 1) for state in State}


def _first_id(state: State, now: datetime) -> UUID:
    return first_id_at(now - SETTLED_FOR) if state in SETTLED else UUID(int=0)
