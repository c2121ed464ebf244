"""SQL for what runs thousands of times a minute: prepared statements, and rows as arrays.

A prepared statement is planned once a connection; the claim of deliveries, say, takes longer to plan
than to run. Rows travel as one array a column, so that a batch of any size is the same statement.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from django.db import connection, models

Row = tuple[Any, ...]


def execute(sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[Row]:
    """Run a statement on Django's connection, in its transaction; the rows that it returns.

    Types are the database's business here: cast what it cannot tell (``%s::uuid[]``).
    """
    connection.ensure_connection()
    connection.validate_no_broken_transaction()
    with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
        cursor.execute(sql, parameters, prepare=True)
        return cursor.fetchall() if cursor.description else []


def columns(rows: Sequence[Row]) -> list[list[Any] | str]:
    """Rows as columns, the form that ``unnest`` takes."""
    return [_array(column) for column in zip(*rows, strict=True)]


def _array(values: Row) -> list[Any] | str:
    """A column as an array. Where no value needs quotes, in PostgreSQL's own notation: psycopg looks at
    each value by itself, which takes four times as long.
    """
    kinds = {type(value) for value in values} - {type(None)}
    if kinds == {UUID}:
        return _literal(values, str)
    if kinds == {datetime}:
        return _literal(values, _quoted)
    return list(values)


def _literal(values: Row, written: Callable[[Any], str]) -> str:
    return f"{{{','.join('NULL' if v is None else written(v) for v in values)}}}"


def _quoted(at: datetime) -> str:
    return f'"{at.isoformat()}"'


def insert(model: type[models.Model], names: tuple[str, ...], rows: Sequence[Row]) -> None:
    """Insert rows of a model, each with a value for these columns; the database fills in the others."""
    if rows:
        execute(_insertion(model, names), columns(rows))


@functools.cache
def _insertion(model: type[models.Model], names: tuple[str, ...]) -> str:
    types = {f.column: f.db_type(connection) for f in model._meta.concrete_fields}
    arrays = ", ".join(f"%s::{types[name]}[]" for name in names)
    table, listed = model._meta.db_table, ", ".join(names)
    return f"INSERT INTO {table} ({listed}) SELECT * FROM unnest({arrays})"  # noqa: S608
