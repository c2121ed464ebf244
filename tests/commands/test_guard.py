"""What PostgreSQL refuses to do to a command, whoever asks: tried by plain SQL, without any of our code."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any

import psycopg
import pytest
from django.db import connection
from psycopg import errors

from commands.models import Command
from commands.rules.states import TRANSITIONS
from tests.factories import Scene, new_scene
from tests.plain_sql import Connection, Raw, change, refused, truncate, undone

STATES = (
    "logged",
    "queued",
    "delivered",
    "failed",
    "acked",
    "nacked",
    "timed_out",
    "retracted",
)
# Written out a second time on purpose: a change of the one in the code must be meant.
PROMISED = {
    ("logged", "queued"),
    ("logged", "retracted"),
    ("queued", "delivered"),
    ("queued", "failed"),
    ("queued", "retracted"),
    ("delivered", "acked"),
    ("delivered", "nacked"),
    ("delivered", "timed_out"),
    ("delivered", "retracted"),
    ("failed", "retracted"),
    ("acked", "retracted"),
    ("nacked", "retracted"),
    ("timed_out", "retracted"),
}
PAIRS = list(itertools.product(STATES, STATES))
NOT_A_TRANSITION = "commands_command: this change of state is not a transition"


def move(sql: Connection, scene: Scene, command: Command, to: str) -> int:
    """Change the state alone, with what a dispatched command must have where it is missing."""
    promised: dict[str, Any] = {}
    if command.delivery_id is None:
        promised = {
            "dispatched_at": Raw("now()"),
            "ack_deadline": Raw("now()"),
            "delivery_id": scene.send().pk,
        }
    return change(sql, "commands_command", command.pk, state=to, **promised)


def state_of(sql: Connection, command: Command) -> str:
    row = sql.execute("SELECT state FROM commands_command WHERE id = %s", [command.pk]).fetchone()
    assert row
    return str(row[0])


def test_the_table_of_transitions_is_the_one_that_was_promised() -> None:
    assert set(TRANSITIONS) == PROMISED
    assert len(TRANSITIONS) == len(PROMISED) == 13
    assert len(PAIRS) == 64


@pytest.mark.parametrize(("old", "new"), [pair for pair in PAIRS if pair in PROMISED])
def test_the_database_lets_a_transition_pass(
    scene: Scene, sql: Connection, old: str, new: str
) -> None:
    command = scene.in_state(old)

    assert move(sql, scene, command, new) == 1

    assert state_of(sql, command) == new


@pytest.mark.parametrize("old", STATES)
def test_the_database_refuses_every_other_change_of_state(
    scene: Scene, sql: Connection, old: str
) -> None:
    command = scene.in_state(old)
    others = [new for new in STATES if new != old and (old, new) not in PROMISED]

    for new in others:
        with refused(sql, NOT_A_TRANSITION):
            move(sql, scene, command, new)

    assert state_of(sql, command) == old


@pytest.mark.parametrize("old", STATES)
def test_a_state_that_does_not_exist_is_refused(scene: Scene, sql: Connection, old: str) -> None:
    command = scene.in_state(old)

    for unknown in ("", "sent", "LOGGED", "acked "):
        with refused(sql, "transition"):
            move(sql, scene, command, unknown)
    with pytest.raises(psycopg.IntegrityError), sql.transaction():
        sql.execute("UPDATE commands_command SET state = NULL WHERE id = %s", [command.pk])


def copied(sql: Connection, command: Command, state: str) -> None:
    """INSERT a copy of the command in some state."""
    columns = [str(field.column) for field in Command._meta.concrete_fields]
    replaced = {"id": "gen_random_uuid()", "client_token": "'copy'", "state": "%(state)s"}
    values = [replaced.get(column, column) for column in columns]
    sql.execute(
        f"INSERT INTO commands_command ({', '.join(columns)})"
        f" SELECT {', '.join(values)} FROM commands_command WHERE id = %(id)s".encode(),
        {"state": state, "id": command.pk},
    )


@pytest.mark.parametrize("state", STATES[1:])
def test_a_new_command_is_refused_in_any_state_but_logged(
    scene: Scene, sql: Connection, state: str
) -> None:
    with refused(sql, "a new row has state logged"):
        copied(sql, scene.issued(), state)


def test_a_new_command_that_is_logged_passes(scene: Scene, sql: Connection) -> None:
    copied(sql, scene.issued(), "logged")

    assert Command.objects.filter(client_token="copy", state="logged").exists()


def test_an_upsert_is_no_way_around(scene: Scene, sql: Connection) -> None:
    command = scene.issued()

    with refused(sql, NOT_A_TRANSITION):
        sql.execute(
            "INSERT INTO commands_command AS c (id, organization_id, dataset_id, client_token, name,"
            " parameters, state, issued_by_id, dispatch_refusal, early_outcome, failure_reason,"
            " retraction_reason)"
            " SELECT id, organization_id, dataset_id, client_token, name, parameters, 'logged',"
            " issued_by_id, '', '', '', '' FROM commands_command WHERE id = %s"
            " ON CONFLICT (id) DO UPDATE SET state = 'acked'",
            [command.pk],
        )


@pytest.mark.parametrize("state", STATES)
def test_a_command_is_never_deleted(scene: Scene, sql: Connection, state: str) -> None:
    command = scene.in_state(state)

    with refused(sql, "commands_command: rows are never deleted"):
        sql.execute("DELETE FROM commands_command WHERE id = %s", [command.pk])


def test_commands_are_never_truncated(scene: Scene, sql: Connection) -> None:
    scene.issued()

    with refused(sql, "rows are never deleted"):
        truncate(sql, "commands_command, commands_commandevent")


@pytest.mark.parametrize(
    "parent",
    [
        "organizations_organization",
        "organizations_user",
        "commands_experiment",
        "commands_dataset",
        "commands_command",
        "webhooks_endpoint",
        "webhooks_event",
        "webhooks_delivery",
    ],
)
def test_a_truncate_does_not_reach_commands_through_what_they_refer_to(
    scene: Scene, sql: Connection, parent: str
) -> None:
    scene.delivered()

    with refused(sql, "rows are never deleted"):
        truncate(sql, f"{parent} CASCADE")


def test_what_was_promised_at_the_issue_never_changes(scene: Scene, sql: Connection) -> None:
    command, other = scene.issued(), new_scene("Another").issued()
    promised = {
        "id": Raw("gen_random_uuid()"),
        "organization_id": other.organization_id,
        "dataset_id": other.dataset_id,
        "client_token": "another",
        "name": "another",
        "parameters": "{ }",
        "issued_by_id": other.issued_by_id,
        "issued_at": Raw("issued_at + interval '1 microsecond'"),
        "reissue_of_id": other.pk,
    }

    for column, value in promised.items():
        with refused(sql, "commands_command: id, organization, .* never change"):
            change(sql, "commands_command", command.pk, **{column: value})


@pytest.mark.parametrize("state", [state for state in STATES if state != "logged"])
def test_what_was_promised_at_the_dispatch_never_changes(
    scene: Scene, sql: Connection, state: str
) -> None:
    command = scene.delivered() if state == "retracted" else scene.in_state(state)
    promised = {
        "dispatched_at": Raw("dispatched_at + interval '1 microsecond'"),
        "ack_deadline": Raw("ack_deadline + interval '1 hour'"),
        "delivery_id": scene.send().pk,
    }

    for column, value in promised.items():
        for changed in (value, None):
            with refused(sql, "never change once set"):
                change(sql, "commands_command", command.pk, **{column: changed})


def test_when_and_by_whom_a_command_ended_never_changes(scene: Scene, sql: Connection) -> None:
    command = scene.in_state("acked")
    change(
        sql,
        "commands_command",
        command.pk,
        state="retracted",
        retracted_at=Raw("now()"),
        retracted_by_id=scene.operator.user.pk,
    )

    for column in ("delivered_at", "settled_at", "retracted_at"):
        with refused(sql, "never change once set"):
            change(sql, "commands_command", command.pk, **{column: Raw("now() + interval '1 s'")})
    with refused(sql, "never change once set"):
        change(sql, "commands_command", command.pk, retracted_by_id=scene.owner.user.pk)


def test_a_command_cannot_be_queued_without_its_deadline_and_delivery(
    scene: Scene, sql: Connection
) -> None:
    command = scene.issued()

    with refused(sql, "dispatched_command_has_its_deadline"):
        change(sql, "commands_command", command.pk, state="queued")


def test_the_body_that_was_promised_never_changes(scene: Scene, sql: Connection) -> None:
    command = scene.dispatched()
    assert command.delivery

    with refused(sql, "webhooks_event: rows are append-only"):
        change(sql, "webhooks_event", command.delivery.event_id, body=b"{}")
    with refused(sql, "webhooks_delivery: .* never change"):
        change(sql, "webhooks_delivery", command.delivery.pk, event_id=scene.send().event_id)


def test_the_timeline_is_append_only(scene: Scene, sql: Connection) -> None:
    scene.delivered()

    with refused(sql, "commands_commandevent: rows are append-only"):
        sql.execute("UPDATE commands_commandevent SET detail = 'another story'")
    with refused(sql, "commands_commandevent: rows are never deleted"):
        sql.execute("DELETE FROM commands_commandevent")
    with refused(sql, "commands_commandevent: rows are never deleted"):
        truncate(sql, "commands_commandevent")


def test_a_setting_of_the_trigger_package_opens_no_door(scene: Scene, sql: Connection) -> None:
    command = scene.issued()

    with undone(sql):
        sql.execute(
            "SELECT set_config('pgtrigger.ignore', (SELECT array_agg(tgrelid::regclass || ':' || tgname)"
            " FROM pg_trigger WHERE NOT tgisinternal)::text, true)"
        )
        with refused(sql, NOT_A_TRANSITION):
            move(sql, scene, command, "acked")
        with refused(sql, "rows are never deleted"):
            sql.execute("DELETE FROM commands_command")


def test_the_replica_role_opens_no_door(scene: Scene, sql: Connection) -> None:
    command = scene.issued()

    with undone(sql):
        # The console's own role may not even ask; a superuser may, to no effect.
        with contextlib.suppress(errors.InsufficientPrivilege), sql.transaction():
            sql.execute("SET LOCAL session_replication_role = replica")
        with refused(sql, NOT_A_TRANSITION):
            move(sql, scene, command, "acked")


@pytest.mark.django_db(transaction=True)
def test_another_client_of_the_database_is_refused_as_well() -> None:
    command = new_scene().issued()
    parameters = connection.get_connection_params()
    parameters = {k: parameters[k] for k in ("dbname", "user", "host", "port") if k in parameters}

    with psycopg.connect(**parameters, autocommit=True) as client:
        with pytest.raises(errors.CheckViolation, match=NOT_A_TRANSITION):
            client.execute("UPDATE commands_command SET state = 'acked'")
        with pytest.raises(errors.CheckViolation, match="rows are never deleted"):
            client.execute("DELETE FROM commands_command")

    command.refresh_from_db()
    assert command.state == "logged"
