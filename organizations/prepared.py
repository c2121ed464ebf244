"""SQL for what runs thousands of times a minute: prepared statements, and rows as arrays.

A prepared statement is planned once a connection; the claim of deliveries, say, takes longer to plan
than to run. Rows travel as one array a column, so that a batch of any size is the same statement.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from django.db import connection, models
from django.db.models.expressions import DatabaseDefault

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


def columns(rows: Sequence[Row]) -> list[list[Any]]:
    """Rows as columns, the form that ``unnest`` takes."""
    return [list(column) for column in zip(*rows, strict=True)]


def insert(instances: Sequence[models.Model]) -> None:
    """Insert rows of one model. What the database fills in (defaults, identities) is not read back.

    A field that has a database default has a value in every instance, or in none.
    """
    if instances:
        sql, fields = _insertion(type(instances[0]), _given(instances))
        execute(sql, columns([_values(instance, fields) for instance in instances]))


def _given(instances: Sequence[models.Model]) -> tuple[str, ...]:
    """The fields that have a value somewhere; the database fills in the others."""
    absent = (DatabaseDefault, type(None))
    return tuple(
        name
        for name in (field.attname for field in instances[0]._meta.concrete_fields)
        if any(not isinstance(getattr(instance, name), absent) for instance in instances)
    )


@functools.cache
def _insertion(
    model: type[models.Model], given: tuple[str, ...]
) -> tuple[str, list[models.Field[Any, Any]]]:
    fields = [f for f in model._meta.concrete_fields if f.attname in given]
    names = ", ".join(f'"{field.column}"' for field in fields)
    arrays = ", ".join(f"%s::{field.db_type(connection)}[]" for field in fields)
    return f'INSERT INTO "{model._meta.db_table}" ({names}) SELECT * FROM unnest({arrays})', fields  # noqa: S608


def _values(instance: models.Model, fields: Sequence[models.Field[Any, Any]]) -> Row:
    return tuple(getattr(instance, field.attname) for field in fields)
