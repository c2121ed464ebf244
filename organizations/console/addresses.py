"""Where a list goes on and where it begins, as its page links to it: cursors and filters in addresses."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import QueryDict

from organizations import paging
from organizations.paging import Page


def number(text: str) -> int | None:
    """A cursor that is a number; None for anything else, which is the beginning."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def identifier(text: str) -> UUID | None:
    """A cursor that is an id."""
    try:
        return UUID(text)
    except ValueError:
        return None


def around(path: str, query: QueryDict, page: Page[Any]) -> dict[str, Any]:
    """Where the list goes on, and where it begins; empty where there is nothing, or nothing else."""
    begun = not query.get("before")
    return {
        "older_url": address(path, query, before=page.older) if page.older else "",
        "newest_url": "" if begun else address(path, query, before=None),
        "looked_at": paging.LOOKED_AT,
    }


def address(path: str, query: QueryDict, **changes: Any) -> str:
    """This list with these parameters changed, or left out where None."""
    changed = query.copy()
    for name, value in changes.items():
        changed[name] = "" if value is None else str(value)
    for name in [name for name, value in changed.items() if not value]:
        del changed[name]
    return f"{path}?{changed.urlencode()}".rstrip("?")
