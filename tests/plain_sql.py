"""Plain SQL past every layer of ours, for tests of what PostgreSQL itself refuses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, LiteralString

import psycopg
import pytest
from django.db import connection
from psycopg import errors

Connection = psycopg.Connection[tuple[Any, ...]]


def plain_connection() -> Connection:
    """The psycopg connection below Django's, inside the test's own transaction."""
    connection.ensure_connection()
    plain: Connection = connection.connection
    return plain


@contextmanager
def refused(sql: Connection, why: LiteralString) -> Iterator[None]:
    """PostgreSQL refuses what is done here, as a violation of a guard or check named ``why``."""
    with pytest.raises(errors.CheckViolation, match=why), sql.transaction():
        yield


@contextmanager
def undone(sql: Connection) -> Iterator[None]:
    """What is done here passes, and is rolled back afterwards."""
    with sql.transaction(force_rollback=True):
        yield


def change(sql: Connection, table: str, row: object, **columns: object) -> int:
    """UPDATE one row, by its id; how many rows that changed. A ``Raw`` value is an expression."""
    values = {name: value for name, value in columns.items() if not isinstance(value, Raw)}
    settings = ", ".join(
        f"{name} = {value if isinstance(value, Raw) else f'%({name})s'}"
        for name, value in columns.items()
    )
    statement = f"UPDATE {table} SET {settings} WHERE id = %(row)s"
    return sql.execute(statement.encode(), {**values, "row": row}).rowcount


def truncate(sql: Connection, tables: str) -> None:
    """TRUNCATE, which PostgreSQL itself refuses while checks of foreign keys are outstanding."""
    sql.execute("SET CONSTRAINTS ALL IMMEDIATE")
    sql.execute(f"TRUNCATE {tables}".encode())


class Raw(str):
    """An SQL expression, not a value."""

    __slots__ = ()
