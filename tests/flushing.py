"""Empties the tables after a test that committed, although the database refuses to delete anything.

Django flushes with one TRUNCATE, which the guards of the audit trail refuse for everybody. The role
of the tests owns its tables and may switch those guards off, as the console's never does: around this
one statement, in its transaction, so that no test ever runs without them.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.db.backends.postgresql.operations import DatabaseOperations

# Guards against TRUNCATE that are in force: bit 32 of tgtype is TRUNCATE, 'A' is ENABLE ALWAYS.
TRUNCATE_GUARDS = """
SELECT tgrelid::regclass::text, tgname FROM pg_trigger
 WHERE NOT tgisinternal AND tgtype & 32 <> 0 AND tgenabled = 'A'
"""


def flush_past_the_guards(patch: pytest.MonkeyPatch) -> None:
    """Have every flush of Django's lift the guards against TRUNCATE, and put them back."""
    flush = DatabaseOperations.sql_flush

    def sql_flush(self: DatabaseOperations, *args: Any, **kwargs: Any) -> list[str]:
        return _past_the_guards(flush(self, *args, **kwargs))

    patch.setattr(DatabaseOperations, "sql_flush", sql_flush)


def _past_the_guards(statements: list[str]) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(TRUNCATE_GUARDS)
        guards = cursor.fetchall()
    return [
        *(f'ALTER TABLE {table} DISABLE TRIGGER "{guard}"' for table, guard in guards),
        *statements,
        *(f'ALTER TABLE {table} ENABLE ALWAYS TRIGGER "{guard}"' for table, guard in guards),
    ]
