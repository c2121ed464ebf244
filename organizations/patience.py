"""How long a search may take: one that no index serves well is given up instead of walking for minutes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import OperationalError, connection, transaction
from psycopg.errors import QueryCanceled


class TookTooLong(Exception):
    """The search took too long; it has to be narrowed."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Give up each statement inside after so long. Raises TookTooLong."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            limit = f"{round(seconds * 1000)}ms"
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [limit])
            yield
            cursor.execute("SET LOCAL statement_timeout TO DEFAULT")
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise TookTooLong from None
        raise
