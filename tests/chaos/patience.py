"""The scenario's own look at a database that it breaks."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from django.db import Error, connection

T = TypeVar("T")

PATIENCE_S = 120.0
PAUSE_S = 0.1


def patiently(act: Callable[[], T]) -> T:
    """Do it again until the database lets it: it may be stopped, full, or still starting."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return act()
        except Error:
            connection.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(PAUSE_S)


def query(sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """The rows of a statement, as soon as the database answers."""
    return patiently(lambda: _query(sql, parameters))


def value(sql: str, *parameters: Any) -> Any:
    """The first column of the first row."""
    return query(sql, *parameters)[0][0]


def _query(sql: str, parameters: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows
