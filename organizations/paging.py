"""Pages of long lists, newest first, by key: nothing is counted, nothing is skipped over.

A filter looks at a bounded part of the list. Among millions of rows what is rare may be far away, and a
page that is asked for every two seconds must not walk there. It says how far it looked, and looks on
from there when somebody wants it to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.db.models import Model, Q, QuerySet, Subquery

M = TypeVar("M", bound=Model)

PAGE_SIZE = 50
# Rows that a filter looks at for one page: some milliseconds along an index.
LOOKED_AT = 10_000


@dataclass(frozen=True)
class Page(Generic[M]):
    """Rows, newest first; ``older`` is the cursor of the next page. ``looked_to`` is the time of the row
    at which a filter stopped looking, although there are older ones.
    """

    rows: Sequence[M]
    older: Any = None
    looked_to: datetime | None = None


@dataclass(frozen=True)
class Listing(Generic[M]):
    """A list: its rows by ``key``, which an index has in this order, and the field that says when."""

    rows: QuerySet[M]
    key: str
    at: str

    def page(self, before: Any, matching: Q | None = None) -> Page[M]:
        """The newest rows that match, or those before the row with that key."""
        rows, stop = self._narrowed(before, matching)
        return self._cut(list(rows[: PAGE_SIZE + 1]), stop)

    def sight(self, before: Any, matching: Q | None, *fields: str) -> Page[Any]:
        """The same page with these fields alone, at a fraction of its cost: what a poll compares."""
        rows, stop = self._narrowed(before, matching)
        named = rows.values_list(self.key, *fields, named=True)
        return self._cut(list(named[: PAGE_SIZE + 1]), stop)

    def _narrowed(
        self, before: Any, matching: Q | None
    ) -> tuple[QuerySet[M], tuple[Any, datetime] | None]:
        rows = self.rows.order_by(f"-{self.key}")
        if before is not None:
            rows = rows.filter(**{f"{self.key}__lt": before})
        stop = self._stop(rows) if matching else None
        if matching:
            rows = rows.filter(matching)
        if stop:
            rows = rows.filter(**{f"{self.key}__gte": stop[0]})
        return rows, stop

    def _cut(self, found: list[Any], stop: tuple[Any, datetime] | None) -> Page[Any]:
        if len(found) > PAGE_SIZE:
            return Page(found[:PAGE_SIZE], getattr(found[PAGE_SIZE - 1], self.key))
        return Page(found, *stop) if stop else Page(found)

    def _stop(self, rows: QuerySet[M]) -> tuple[Any, datetime] | None:
        """The key and the time of the last row that a filter looks at; None when it looks at all."""
        last = rows.select_related(None).values(self.key)[LOOKED_AT - 1 : LOOKED_AT]
        stop = self.rows.filter(**{self.key: Subquery(last)})
        return stop.select_related(None).values_list(self.key, self.at).first()


def only(given: dict[str, Callable[[Any], Q]], asked: dict[str, Any]) -> Q | None:
    """The condition of all that is asked for; None where nothing is."""
    conditions = [condition(asked[name]) for name, condition in given.items() if asked.get(name)]
    return Q(*conditions) if conditions else None
