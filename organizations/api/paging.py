"""Lists, newest first, page by page.

A page begins after the last id of the page before, so rows that arrive meanwhile shift nothing and no
page costs more than the first. Cursors are signed for one list of one organization: any other is
refused instead of being read as something it is not.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.core import signing
from django.db.models import Model, QuerySet
from drf_spectacular.utils import inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from organizations.actors import Actor
from organizations.api.fields import Count, Text
from organizations.api.inputs import Input

DEFAULT_LIMIT = 50
MAX_LIMIT = 200
# A full page of the largest rows would be 200 MiB in memory. One row weighs a tenth of it at most.
PAGE_BYTES = 8 * 1_048_576

Row = TypeVar("Row", bound=Model)
# Reads the newest rows before an id (None: the newest of all), so many at most.
Fetch = Callable[[str | None, int], Sequence[Row]]


class PageQuery(Input):
    """Which page. A list's own filters are fields of a subclass."""

    cursor = Text(required=False, help_text="The `nextCursor` of the page before.")
    limit = Count(
        default=DEFAULT_LIMIT,
        min_value=1,
        max_value=MAX_LIMIT,
        help_text="Rows at most. A page of large rows ends earlier.",
    )


@dataclass(frozen=True)
class Page(Generic[Row]):
    """Some rows of a list, and the cursor of the page after; None on the last."""

    rows: Sequence[Row]
    next_cursor: str | None

    def response(
        self, kind: type[serializers.Serializer[Any]], context: dict[str, Any] | None = None
    ) -> Response:
        """The answer, with the rows as this serializer shows them."""
        shown = kind(self.rows, many=True, context=context or {})
        return Response({"items": shown.data, "nextCursor": self.next_cursor})


def read(
    name: str,
    actor: Actor,
    asked: dict[str, Any],
    fetch: Fetch[Row],
    size: Callable[[Row], int] = lambda row: 0,
) -> Page[Row]:
    """The page that a validated PageQuery asks for. Raises ValidationError for a foreign cursor.

    ``size`` is how many bytes a row weighs in the answer: a page ends before PAGE_BYTES are exceeded,
    though never before its first row.
    """
    signer = signing.Signer(sep=".", salt=f"api.cursor.{name}.{actor.organization.pk}")
    before = _position(signer, asked["cursor"]) if "cursor" in asked else None
    rows = fetch(before, asked["limit"] + 1)
    shown = _light_enough(rows[: asked["limit"]], size)
    more = len(rows) > len(shown)
    return Page(shown, signer.sign(_sealed(shown[-1].pk)) if more else None)


def _light_enough(rows: Sequence[Row], size: Callable[[Row], int]) -> Sequence[Row]:
    sums = itertools.accumulate(size(row) for row in rows)
    light = sum(1 for _ in itertools.takewhile(lambda sum_: sum_ <= PAGE_BYTES, sums))
    return rows[: max(light, 1)]


def newest_first(rows: QuerySet[Row]) -> Fetch[Row]:
    """Pages of a queryset whose ids sort by time."""

    def fetch(before: str | None, count: int) -> Sequence[Row]:
        older = rows if before is None else rows.filter(pk__lt=before)
        return list(older.order_by("-pk")[:count])

    return fetch


def page_of(item: type[serializers.Serializer[Any]], name: str) -> serializers.Serializer[Any]:
    """The shape of a page, for the API's description."""
    shape: serializers.Serializer[Any] = inline_serializer(
        name=f"{name}Page",
        fields={
            "items": item(many=True),
            "nextCursor": serializers.CharField(allow_null=True),
        },
    )
    return shape


def _sealed(pk: Any) -> str:
    return signing.b64_encode(str(pk).encode()).decode()


def _position(signer: signing.Signer, cursor: str) -> str:
    try:
        return signing.b64_decode(signer.unsign(cursor).encode()).decode()
    except signing.BadSignature:
        raise ValidationError({"cursor": ["Not a cursor of this list."]}) from None
