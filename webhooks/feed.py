"""Reads published events back in one order, and never past one that is still to be committed.

An event's place is drawn when it is made, but transactions commit in any order: a reader who sees place
8 may not have 7 yet, and would never come back for it. So a page ends before the first place that an
open transaction may still fill. Each of them announced that place before it drew any (see ``Placed``
in ``webhooks.models.event``), in a lock that lasts until its changes are visible. Of three statements,
each sees more than the one before:

1. the next place to be drawn. A transaction that draws a lower one has announced itself by now;
2. the lowest place announced. Who announced himself before and is not found here has ended;
3. the events before both. All of them are there: who could still bring one would have been found.

A transaction that publishes nothing holds nobody up, however long it takes, nor does another database
of the server; and the order survives a dump and restore, because it is made of nothing but rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection
from django.db.models import Max

from webhooks.models import Event
from webhooks.models.event import FEED_LOCK
from webhooks.rules.event_types import WILDCARD

# Bytes of bodies that a page stops at: a full page of the largest ones would be 200 MiB in memory.
PAGE_BYTES = 8 * 1_048_576

NEXT_PLACE = "SELECT last_value + is_called::int FROM webhooks_event_place"

# An advisory lock's key is shown as two halves. Our own transaction, if one is open, is no obstacle: we
# see what it did.
ANNOUNCED = """
SELECT min(((classid::bigint << 32) | objid::bigint) & ((1::bigint << 48) - 1))
  FROM pg_locks
 WHERE locktype = 'advisory' AND objsubid = 1 AND classid::bigint >> 16 = %s
   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND pid <> pg_backend_pid()
"""

# The size of a body is known without reading it.
PAGE = """
SELECT id, organization_id, type, body, place, hops, idempotency_key, created_at FROM (
    SELECT *, sum(octet_length(body)) OVER (ORDER BY place) - octet_length(body) AS bytes_before
      FROM webhooks_event
     WHERE organization_id = %(organization)s AND published
       AND place > %(after)s AND place < %(end)s
       AND CASE WHEN %(is_prefix)s THEN starts_with(type, %(type)s) ELSE type = %(type)s END
     ORDER BY place LIMIT %(limit)s) page
 WHERE bytes_before < %(bytes)s ORDER BY place
"""


class NeverThere(Exception):
    """No reader can have come to this place. One had, and an older backup was restored since."""


@dataclass(frozen=True)
class Page:
    """Events in their order, and the place from which to read on, now or later."""

    events: Sequence[Event]
    read_to: int


def read(organization_id: UUID, after: int, limit: int, wanted: str = WILDCARD) -> Page:
    """The organization's first ``limit`` published events after that place, fewer if they are large.

    ``wanted`` is a type, or a prefix of types as in a subscription. Call it outside of a transaction of
    a stricter level than READ COMMITTED: it relies on each statement seeing what was committed before.

    Raises NeverThere.
    """
    next_place = _next_place()
    if after >= next_place:
        raise NeverThere
    end = min(next_place, _lowest_announced() or next_place)
    events = list(
        Event.objects.raw(
            PAGE,
            {
                "organization": organization_id,
                "after": after,
                "end": end,
                "type": wanted.removesuffix(WILDCARD),
                "is_prefix": wanted.endswith(WILDCARD),
                "limit": limit,
                "bytes": PAGE_BYTES,
            },
        )
    )
    if events:
        read_to = events[-1].place or after
    elif wanted != WILDCARD:
        read_to = _last_place(organization_id, after, end)
    else:
        read_to = after
    return Page(events, read_to)


def place_of(organization_id: UUID, event_id: UUID) -> int | None:
    """Where one of the organization's events stands in the feed; None when there is no such."""
    found = Event.objects.filter(organization_id=organization_id, published=True, pk=event_id)
    return found.values_list("place", flat=True).first()


def _next_place() -> int:
    with connection.cursor() as cursor:
        cursor.execute(NEXT_PLACE)
        [place] = cursor.fetchone()
    return int(place)


def _lowest_announced() -> int | None:
    with connection.cursor() as cursor:
        cursor.execute(ANNOUNCED, [FEED_LOCK])
        [place] = cursor.fetchone()
    return None if place is None else int(place)


def _last_place(organization_id: UUID, after: int, end: int) -> int:
    """The organization's last event before ``end``: a filter that finds nothing looked at all of them,
    and need not do so again.
    """
    seen = Event.objects.filter(
        organization_id=organization_id, published=True, place__gt=after, place__lt=end
    ).aggregate(last=Max("place"))
    return seen["last"] or after
