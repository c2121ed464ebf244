"""Invariants that PostgreSQL itself enforces, declared beside the fields they protect.

django-pgtrigger puts these declarations into ordinary migrations. Two things differ from its stock
triggers, both so that *no* client of the database gets past them:

* its functions step aside when a session sets ``pgtrigger.ignore``; ours have no such door;
* they fire ``ALWAYS``, also for a session with ``session_replication_role = replica``.

A refusal is an ``IntegrityError`` (SQLSTATE 23514) whose message says what was tried.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import pgtrigger
from django.db import models
from pgtrigger import compiler


class GuardSql(compiler.UpsertTriggerSql):
    """The installation script of a guard. Migrations refer to it: a change here is a new class."""

    def get_template(self) -> str:
        return """
            CREATE OR REPLACE FUNCTION {pgid}() RETURNS TRIGGER AS $$
                BEGIN
                    {func}
                END;
            $$ LANGUAGE plpgsql;

            DROP TRIGGER IF EXISTS {pgid} ON {table};
            CREATE TRIGGER {pgid}
                {when} {operation} ON {table}
                FOR EACH {level} {condition}
                EXECUTE FUNCTION {execute};
            ALTER TABLE {table} ENABLE ALWAYS TRIGGER {pgid};

            COMMENT ON TRIGGER {pgid} ON {table} IS '{hash}';
        """


class Guard(pgtrigger.Trigger):
    """Refuses an operation, with a message, whenever its condition holds.

    The condition is the trigger's WHEN clause: an operation that is allowed never calls a function.
    """

    when = pgtrigger.Before

    def __init__(self, *, refusal: str, **kwargs: Any) -> None:
        self.refusal = refusal.replace("'", "''")
        super().__init__(**kwargs)

    def get_func(self, model: type[models.Model]) -> str:  # type: ignore[override]
        return (
            f"RAISE EXCEPTION '{model._meta.db_table}: {self.refusal}' "
            "USING ERRCODE = 'check_violation';"
        )

    def compile(self, model: type[models.Model]) -> compiler.Trigger:  # type: ignore[override]
        compiled = super().compile(model)  # type: ignore[arg-type]
        arguments = {**compiled.sql.kwargs, "ignore_func_name": "none"}
        return compiler.Trigger(name=compiled.name, sql=GuardSql(**arguments))


class KeepsOne(Guard):
    """Refuses to take a value from the last row that has it among those that share a parent.

    The parent's row is locked first, so that of two who would each leave the other one the second sees
    what the first did.
    """

    def __init__(self, *, field: str, value: str, parent: str, **kwargs: Any) -> None:
        self.field, self.value, self.parent = field, value, parent
        super().__init__(**kwargs)

    def get_func(self, model: type[models.Model]) -> str:  # type: ignore[override]
        parent: Any = model._meta.get_field(self.parent)
        table, column = model._meta.db_table, parent.column
        return f"""
            PERFORM FROM {parent.related_model._meta.db_table}
              WHERE id = OLD.{column} FOR NO KEY UPDATE;
            IF NOT EXISTS (SELECT FROM {table} WHERE {column} = OLD.{column}
                              AND {self.field} = '{self.value}' AND id <> OLD.id) THEN
                {super().get_func(model)}
            END IF;
            RETURN COALESCE(NEW, OLD);
        """


def keeps_one(field: str, value: str, parent: str, refusal: str) -> list[Guard]:
    """Of the rows of each ``parent`` one keeps ``value``: the last neither changes nor goes, nor moves to
    another parent.
    """
    told = {"field": field, "value": value, "parent": parent, "refusal": refusal}
    leaves = pgtrigger.Q(**{f"new__{field}__df": value})
    moves = pgtrigger.Q(**{f"old__{parent}__df": pgtrigger.F(f"new__{parent}")})
    return [
        KeepsOne(
            name=f"keeps_{value}",
            operation=pgtrigger.Update,
            condition=pgtrigger.Q(**{f"old__{field}": value}) & (leaves | moves),
            **told,
        ),
        KeepsOne(
            name=f"keeps_{value}_deleted",
            operation=pgtrigger.Delete,
            condition=pgtrigger.Q(**{f"old__{field}": value}),
            **told,
        ),
    ]


def never_deleted() -> list[Guard]:
    """Rows stay for good: DELETE and TRUNCATE are refused."""
    return [
        Guard(
            name="no_delete",
            operation=pgtrigger.Delete,
            refusal="rows are never deleted",
        ),
        Guard(
            name="no_truncate",
            operation=pgtrigger.Truncate,
            level=pgtrigger.Statement,
            refusal="rows are never deleted",
        ),
    ]


def append_only() -> list[Guard]:
    """Rows are written once: UPDATE, DELETE and TRUNCATE are refused."""
    return [
        Guard(name="no_update", operation=pgtrigger.Update, refusal="rows are append-only"),
        *never_deleted(),
    ]


def frozen(*fields: str) -> Guard:
    """What was promised at the start stays: no change of these fields."""
    return Guard(
        name="frozen",
        operation=pgtrigger.Update,
        condition=_any(pgtrigger.Q(**{f"old__{f}__df": pgtrigger.F(f"new__{f}")}) for f in fields),
        refusal=f"{', '.join(fields)} never change",
    )


def frozen_once_set(*fields: str) -> Guard:
    """Empty until it is promised, unchanged from then on."""
    return Guard(
        name="frozen_once_set",
        operation=pgtrigger.Update,
        condition=_any(
            pgtrigger.Q(
                **{
                    f"old__{f}__isnull": False,
                    f"old__{f}__df": pgtrigger.F(f"new__{f}"),
                }
            )
            for f in fields
        ),
        refusal=f"{', '.join(fields)} never change once set",
    )


def frozen_row_once_set(field: str) -> Guard:
    """A row takes no further UPDATE once ``field`` has a value."""
    return Guard(
        name="frozen_row",
        operation=pgtrigger.Update,
        condition=pgtrigger.Q(**{f"old__{field}__isnull": False}),
        refusal=f"a row with {field} never changes",
    )


def starts_as(field: str, value: str) -> Guard:
    """A new row has this value."""
    return Guard(
        name="starts_as",
        operation=pgtrigger.Insert,
        condition=pgtrigger.Q(**{f"new__{field}__df": value}),
        refusal=f"a new row has {field} {value}",
    )


def transitions(field: str, allowed: Sequence[tuple[str, str]]) -> Guard:
    """Only the listed changes of ``field``, each a pair (from, to)."""
    pairs = ", ".join(f"('{old}', '{new}')" for old, new in allowed)
    return Guard(
        name="transitions",
        operation=pgtrigger.Update,
        condition=pgtrigger.Condition(
            f'OLD."{field}" IS DISTINCT FROM NEW."{field}" '
            f'AND (OLD."{field}", NEW."{field}") NOT IN ({pairs})'
        ),
        refusal=f"this change of {field} is not a transition",
    )


def _any(conditions: Iterable[pgtrigger.Q]) -> pgtrigger.Q:
    return functools.reduce(operator.or_, conditions)
