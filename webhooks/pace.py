"""How an organization's attempts went in the last hour, minute by minute.

Nothing is written for it. Attempts are numbered in the order of time, so a minute is a range of their
ids, whose ends are found by halving. A minute that is over does not change any more: it is counted once
and remembered. What one look counts is bounded, so after a busy hour that nobody looked at, the older
minutes come with the next looks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final, NamedTuple

from django.conf import settings
from django.core.cache import cache
from django.db import connection

from organizations import prepared
from organizations.models import Organization
from webhooks.models import Endpoint

MINUTE: Final = timedelta(minutes=1)
MINUTES: Final = 60
# By then a worker that died has lost its lease, and its attempt was closed as lost.
SETTLED_AFTER: Final = timedelta(seconds=settings.LEASE_S + 5)
# Attempts, of all organizations, that one look counts: some milliseconds.
AT_MOST: Final = 20_000
REMEMBERED_S: Final = 2 * 3600

# The id of the first attempt that was claimed at each of the times or later; one above all ids where
# none was. Without any attempt there is no row.
FIRSTS = """
WITH RECURSIVE halving(at, low, high) AS (
    SELECT wanted.at, greatest(%(low)s::bigint, ids.low), ids.high
      FROM unnest(%(times)s::timestamptz[]) AS wanted(at),
           (SELECT min(id), max(id) + 1 FROM webhooks_attempt) AS ids(low, high)
    UNION ALL
    SELECT at, CASE WHEN earlier THEN middle + 1 ELSE low END,
               CASE WHEN earlier THEN high ELSE middle END
      FROM (SELECT *, (SELECT a.claimed_at < at FROM webhooks_attempt a
                        WHERE a.id >= middle ORDER BY a.id LIMIT 1) AS earlier
              FROM (SELECT *, (low + high) / 2 AS middle FROM halving WHERE low < high) half) probed
)
SELECT at, low FROM halving WHERE low >= high
"""

# A range of ids a minute, read from the primary key: there the attempts lie in the order of time.
TALLIES = """
SELECT wanted.start, tally.*
  FROM unnest(%(starts)s::timestamptz[], %(firsts)s::bigint[], %(ends)s::bigint[])
       AS wanted(start, first, beyond)
 CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE a.verdict = 'delivered'),
           count(*) FILTER (WHERE a.verdict IN ('retry', 'failed')),
           count(*) FILTER (WHERE a.verdict = 'lost')
      FROM webhooks_attempt a
     WHERE a.id >= wanted.first AND a.id < wanted.beyond AND a.endpoint_id = ANY(%(endpoints)s)
 ) tally
"""


class Tally(NamedTuple):
    """What became of a minute's attempts. Those that are still on the wire are not in it."""

    delivered: int = 0
    failed: int = 0
    lost: int = 0


@dataclass(frozen=True)
class Minute:
    """The attempts that began in this minute; ``tally`` is None where they are not counted yet."""

    start: datetime
    tally: Tally | None


class Remembered(NamedTuple):
    """What is known of a minute that is over: the id of its first attempt and, once counted, its tally."""

    first: int
    tally: tuple[int, int, int] | None


class Span(NamedTuple):
    """The ids of the attempts of a minute, ``beyond`` not included."""

    start: datetime
    first: int
    beyond: int


def last_hour(organization: Organization, now: datetime) -> list[Minute]:
    """The last sixty minutes, oldest first; the last one is under way."""
    this_minute = now.replace(second=0, microsecond=0)
    starts = [this_minute - MINUTE * back for back in reversed(range(MINUTES))]
    # Bare tuples, which also another release can read.
    key = f"pace-1:{organization.pk}"
    remembered = {start: Remembered(*known) for start, known in cache.get(key, {}).items()}
    firsts = _firsts(remembered, [*starts, now])
    tallies = {s: Tally(*r.tally) for s in starts if (r := remembered.get(s)) and r.tally}
    spans = [
        Span(start, firsts[start], firsts[end])
        for start, end in pairwise([*starts, now] if firsts else ())
        if start not in tallies
    ]
    tallies |= _count(organization, list(_affordable(spans, now)))
    over = {
        start: Remembered(firsts[start], tallies.get(start))
        for start in starts
        if start in firsts and _is_over(start, now)
    }
    if over != remembered:
        cache.set(key, {start: tuple(known) for start, known in over.items()}, REMEMBERED_S)
    uncounted = None if firsts else Tally()
    return [Minute(start, tallies.get(start, uncounted)) for start in starts]


def _firsts(
    remembered: dict[datetime, Remembered], times: Sequence[datetime]
) -> dict[datetime, int]:
    """The first id at each of the times; empty where there is no attempt at all."""
    known = {time: remembered[time].first for time in times if time in remembered}
    missing = [time for time in times if time not in known]
    # What is not known is the newest, as a rule: it is searched among what came since.
    low = max((first for time, first in known.items() if time < missing[0]), default=0)
    return known | dict(prepared.execute(FIRSTS, {"times": missing, "low": low}))


def _affordable(spans: Iterable[Span], now: datetime) -> Iterator[Span]:
    """What this look counts: the newest first, as far as it may, and in any case one of those that are
    over and too large for that, so that the hour gets complete however much happens in it.
    """
    left, exceeded = AT_MOST, False
    for span in sorted(spans, reverse=True):
        size = span.beyond - span.first
        if size <= left:
            left -= size
            yield span
        elif not exceeded and _is_over(span.start, now):
            exceeded = True
            yield span


def _is_over(start: datetime, now: datetime) -> bool:
    return start + MINUTE + SETTLED_AFTER <= now


def _count(organization: Organization, spans: Sequence[Span]) -> dict[datetime, Tally]:
    """How the attempts in these spans ended."""
    tallies = {span.start: Tally() for span in spans}
    some = [span for span in spans if span.first < span.beyond]
    if not some:
        return tallies
    starts, firsts, ends = zip(*some, strict=True)
    endpoints = Endpoint.objects.filter(organization=organization).values_list("pk", flat=True)
    wanted = {"starts": starts, "firsts": firsts, "ends": ends, "endpoints": list(endpoints)}
    with connection.cursor() as cursor:
        cursor.execute(TALLIES, {name: list(values) for name, values in wanted.items()})
        return tallies | {start: Tally(*counts) for start, *counts in cursor.fetchall()}
