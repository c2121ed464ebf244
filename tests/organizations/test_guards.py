"""What PostgreSQL refuses to do to the audit trail, and to an API key; and that every guard is there."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.apps import apps
from django.db import connection

from organizations import guards
from organizations.models import ApiKey, AuditEntry
from tests.factories import Scene, new_scene
from tests.plain_sql import Connection, Raw, change, refused, truncate

ANOTHER: dict[str, object] = {
    "id": 2**40,
    "organization_id": uuid4(),
    "at": Raw("now() + interval '1 day'"),
    "user_id": None,
    "api_key_id": uuid4(),
    "via": "another",
    "address": "192.0.2.1",
    "act": "another",
    "target_type": "another",
    "target_id": "another",
    "before": Raw("""'{"state": "another"}'"""),
    "after": Raw("""'{"state": "another"}'"""),
}


def test_an_audit_entry_never_changes(scene: Scene, sql: Connection) -> None:
    scene.issued()
    entry = AuditEntry.objects.latest("pk")
    assert ANOTHER.keys() == {field.column for field in AuditEntry._meta.concrete_fields}

    for column, value in ANOTHER.items():
        with refused(sql, "organizations_auditentry: rows are append-only"):
            change(sql, "organizations_auditentry", entry.pk, **{column: value})


def test_an_audit_entry_is_never_deleted(scene: Scene, sql: Connection) -> None:
    with refused(sql, "organizations_auditentry: rows are never deleted"):
        sql.execute("DELETE FROM organizations_auditentry")
    for tables in ("organizations_auditentry", "organizations_user CASCADE"):
        with refused(sql, "rows are never deleted"):
            truncate(sql, tables)


def test_a_key_stays_the_key_it_is(scene: Scene, sql: Connection) -> None:
    other = new_scene("Another")
    key = ApiKey.objects.get(user=scene.operator.user)
    promised = {
        "organization_id": other.organization.pk,
        "user_id": scene.owner.user.pk,
        "prefix": "another",
        "digest": "another",
        "created_at": Raw("now() + interval '1 day'"),
    }

    for column, value in promised.items():
        with refused(sql, "organizations_apikey: .* never change"):
            change(sql, "organizations_apikey", key.pk, **{column: value})


def test_a_revoked_key_stays_revoked(scene: Scene, sql: Connection) -> None:
    key = ApiKey.objects.get(user=scene.operator.user)
    change(sql, "organizations_apikey", key.pk, revoked_at=Raw("now()"))

    with refused(sql, "revoked_at never change once set"):
        change(sql, "organizations_apikey", key.pk, revoked_at=None)


@pytest.mark.django_db
def test_every_guard_that_a_model_declares_is_in_force() -> None:
    """Installed, as declared now, and for every session: 'A' is ENABLE ALWAYS."""
    declared = {
        (model._meta.db_table, trigger.get_pgid(model)): trigger.compile(model).hash
        for model in apps.get_models()
        for trigger in getattr(model._meta, "triggers", [])
    }
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tgrelid::regclass::text, tgname, tgenabled, obj_description(oid, 'pg_trigger')"
            " FROM pg_trigger WHERE NOT tgisinternal"
        )
        installed = {(table, name): (mode, hash_) for table, name, mode, hash_ in cursor.fetchall()}

    assert len(declared) > 30
    assert installed == {key: ("A", hash_) for key, hash_ in declared.items()}


def test_every_guard_is_of_the_kind_without_a_door() -> None:
    declared = [
        trigger for model in apps.get_models() for trigger in getattr(model._meta, "triggers", [])
    ]

    assert all(isinstance(trigger, guards.Guard) for trigger in declared)
