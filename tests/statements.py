"""Counts what is asked of the database, by whatever way: Django's own log knows only of the ORM's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest


@contextmanager
def counted() -> Iterator[list[object]]:
    """The statements of this process, in the order in which they are executed."""
    statements: list[object] = []
    execute = psycopg.Cursor.execute

    def counting(self: Any, query: Any, *args: Any, **options: Any) -> Any:
        statements.append(query)
        return execute(self, query, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.Cursor, "execute", counting)
        yield statements
