"""A test that commits leaves empty tables and guards in force behind."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection

from commands.models import Command
from tests.factories import new_scene

GUARDS = """
SELECT tgrelid::regclass::text, tgname, tgenabled FROM pg_trigger
 WHERE NOT tgisinternal ORDER BY 1, 2
"""


def guards() -> list[tuple[str, str, str]]:
    with connection.cursor() as cursor:
        cursor.execute(GUARDS)
        return list(cursor.fetchall())


@pytest.mark.django_db(transaction=True)
def test_a_flush_empties_the_tables_and_leaves_every_guard_as_it_was() -> None:
    before = guards()
    new_scene().delivered()

    call_command("flush", interactive=False, verbosity=0)

    assert not Command.objects.exists()
    assert guards() == before
    assert {enabled for _, _, enabled in before} == {"A"}


@pytest.mark.django_db(transaction=True)
def test_after_a_flush_nothing_can_be_deleted_again() -> None:
    call_command("flush", interactive=False, verbosity=0)
    command = new_scene().issued()

    with (
        pytest.raises(DatabaseError, match="rows are never deleted"),
        connection.cursor() as cursor,
    ):
        cursor.execute("TRUNCATE commands_command CASCADE")

    assert Command.objects.filter(pk=command.pk).exists()
