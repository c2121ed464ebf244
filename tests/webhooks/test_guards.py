"""What PostgreSQL refuses to do to endpoints, events, deliveries and attempts, tried by plain SQL."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from uuid import uuid4

import psycopg
import pytest

from commands import lifecycle
from tests import factories
from tests.factories import Scene, new_scene
from tests.plain_sql import Connection, Raw, change, refused, truncate
from webhooks.models import Attempt, Delivery

LATER = Raw("now() + interval '1 day'")
STATES = ("pending", "delivered", "failed", "cancelled")
TRANSITIONS = {("pending", "delivered"), ("pending", "failed"), ("pending", "cancelled")}


def delivery_in(scene: Scene, state: str) -> Delivery:
    """A delivery that ended like this, or waits for its first attempt."""
    match state:
        case "pending":
            return scene.send()
        case "cancelled":
            command = scene.dispatched()
            lifecycle.retract(scene.operator, command.pk)
            return factories.delivery_of(command)
        case _:
            delivery = scene.send()
            factories.fail_with(delivery, [200 if state == "delivered" else 400])
            return factories.delivery_of(delivery)


def settle(sql: Connection, delivery: Delivery, state: str) -> int:
    """Change the state together with all that the checks ask for."""
    time = {"next_attempt_at": LATER} if state == "pending" else {"next_attempt_at": None}
    settled = {} if delivery.settled_at else {"settled_at": Raw("now()")}
    return change(
        sql, "webhooks_delivery", delivery.pk, state=state, lease_until=None, **time, **settled
    )


@pytest.mark.parametrize(("old", "new"), list(itertools.permutations(STATES, 2)))
def test_a_delivery_only_ever_ends(scene: Scene, sql: Connection, old: str, new: str) -> None:
    delivery = delivery_in(scene, old)
    assert delivery.state == old

    if (old, new) in TRANSITIONS:
        assert settle(sql, delivery, new) == 1
    else:
        with refused(sql, "webhooks_delivery: this change of state is not a transition"):
            settle(sql, delivery, new)


def test_a_new_delivery_is_pending(scene: Scene, sql: Connection) -> None:
    scene.send()

    with refused(sql, "webhooks_delivery: a new row has state pending"):
        sql.execute(
            "INSERT INTO webhooks_delivery (id, organization_id, endpoint_id, event_id, is_ping,"
            " policy, state, attempts, failure_reason, settled_at)"
            " SELECT gen_random_uuid(), organization_id, endpoint_id, event_id, is_ping, policy,"
            " 'delivered', 0, '', now() FROM webhooks_delivery"
        )


@pytest.mark.parametrize(
    ("columns", "check"),
    [
        ({"next_attempt_at": None}, "pending_delivery_has_a_time"),
        ({"lease_until": LATER}, "delivery_waits_or_is_in_flight"),
        ({"state": "failed", "settled_at": Raw("now()")}, "settled_delivery_waits_for_nothing"),
        ({"state": "failed", "next_attempt_at": None}, "settled_delivery_says_when"),
    ],
)
def test_a_delivery_is_never_left_where_nothing_happens_next(
    scene: Scene, sql: Connection, columns: dict[str, object], check: str
) -> None:
    delivery = scene.send()

    with pytest.raises(psycopg.errors.CheckViolation, match=check), sql.transaction():
        change(sql, "webhooks_delivery", delivery.pk, **columns)


def test_what_a_delivery_carries_and_where_to_never_changes(scene: Scene, sql: Connection) -> None:
    delivery, other = scene.send(), new_scene("Another").send()
    promised = {
        "id": uuid4(),
        "organization_id": other.organization_id,
        "endpoint_id": other.endpoint_id,
        "event_id": other.event_id,
        "command_id": uuid4(),
        "is_ping": True,
        "policy": "telemetry",
        "created_at": LATER,
    }

    for column, value in promised.items():
        with refused(sql, "webhooks_delivery: .* never change"):
            change(sql, "webhooks_delivery", delivery.pk, **{column: value})


def test_when_a_delivery_ended_never_changes(scene: Scene, sql: Connection) -> None:
    delivery = delivery_in(scene, "failed")

    for value in (LATER, None):
        with refused(sql, "webhooks_delivery: settled_at never change once set"):
            change(sql, "webhooks_delivery", delivery.pk, settled_at=value)


def test_an_event_never_changes(scene: Scene, sql: Connection) -> None:
    event_id = scene.send().event_id

    for column, value in {"body": b"{ }", "type": "another", "published": True}.items():
        with refused(sql, "webhooks_event: rows are append-only"):
            change(sql, "webhooks_event", event_id, **{column: value})


# A different value for each column of an attempt; those not named here are in ANOTHER_IDENTITY.
ANOTHER_RESULT: dict[str, object] = {
    "started_at": LATER,
    "finished_at": LATER,
    "duration_ms": 1,
    "verdict": "delivered",
    "status_code": 200,
    "phase": "name",
    "error_kind": "dns",
    "error": "another",
    "response_excerpt": b"another",
    "excerpt_truncated": True,
    "retry_after": "1",
    "location": "https://elsewhere.example/",
    "next_attempt_at": LATER,
}
ANOTHER_IDENTITY: dict[str, object] = {
    "id": 2**40,
    "delivery_id": uuid4(),
    "endpoint_id": uuid4(),
    "number": 7,
    "worker": "another",
    "due_at": LATER,
    "claimed_at": LATER,
}


def test_these_tests_know_every_column_of_an_attempt() -> None:
    columns = {field.column for field in Attempt._meta.concrete_fields}

    assert columns == ANOTHER_RESULT.keys() | ANOTHER_IDENTITY.keys()


def test_a_finished_attempt_never_changes(scene: Scene, sql: Connection) -> None:
    delivery = scene.send()
    factories.fail_with(delivery, [503])
    [attempt] = factories.attempts(delivery)

    for column, value in (ANOTHER_RESULT | ANOTHER_IDENTITY).items():
        with refused(sql, "webhooks_attempt: "):
            change(sql, "webhooks_attempt", attempt.pk, **{column: value})
    with refused(sql, "webhooks_attempt: a row with finished_at never changes"):
        change(sql, "webhooks_attempt", attempt.pk, finished_at=None, verdict="")


def test_an_attempt_on_the_wire_stays_the_attempt_it_is(scene: Scene, sql: Connection) -> None:
    attempt = factories.claim(scene.send())

    for column, value in ANOTHER_IDENTITY.items():
        with refused(sql, "webhooks_attempt: id, delivery, .* never change"):
            change(sql, "webhooks_attempt", attempt.attempt_id, **{column: value})


@pytest.mark.parametrize("columns", [{"verdict": "delivered"}, {"finished_at": Raw("now()")}])
def test_an_attempt_is_finished_together_with_its_verdict(
    scene: Scene, sql: Connection, columns: dict[str, object]
) -> None:
    attempt = factories.claim(scene.send())

    with refused(sql, "finished_attempt_has_a_verdict"):
        change(sql, "webhooks_attempt", attempt.attempt_id, **columns)


def test_two_attempts_of_a_delivery_never_have_one_number(scene: Scene, sql: Connection) -> None:
    attempt = factories.claim(scene.send())

    with (
        pytest.raises(psycopg.errors.UniqueViolation, match="one_attempt_a_number"),
        sql.transaction(),
    ):
        sql.execute(
            "INSERT INTO webhooks_attempt (delivery_id, endpoint_id, number, worker, due_at,"
            " claimed_at, verdict, error_kind, error, response_excerpt, excerpt_truncated,"
            " retry_after, location)"
            " SELECT delivery_id, endpoint_id, number, worker, due_at, claimed_at, '', '', '', '',"
            " false, '', '' FROM webhooks_attempt WHERE id = %s",
            [attempt.attempt_id],
        )


@pytest.mark.parametrize(
    "table",
    [
        "webhooks_endpoint",
        "webhooks_endpointsecret",
        "webhooks_event",
        "webhooks_delivery",
        "webhooks_attempt",
    ],
)
def test_nothing_of_a_delivery_is_ever_deleted(scene: Scene, sql: Connection, table: str) -> None:
    factories.fail_with(scene.send(), [200])

    with refused(sql, "rows are never deleted"):
        sql.execute(f"DELETE FROM {table}".encode())
    with refused(sql, "rows are never deleted"):
        truncate(sql, f"{table} CASCADE")


def test_an_endpoint_stays_with_its_organization(scene: Scene, sql: Connection) -> None:
    other = new_scene("Another").organization
    changes: dict[str, Callable[[], object]] = {
        "id": uuid4,
        "organization_id": lambda: other.pk,
        "created_at": lambda: LATER,
    }

    for column, value in changes.items():
        with refused(sql, "webhooks_endpoint: id, organization, created_at never change"):
            change(sql, "webhooks_endpoint", scene.endpoint.pk, **{column: value()})


@pytest.mark.parametrize(
    ("columns", "check"),
    [
        ({"enabled": False}, "disabled_endpoint_says_since_when"),
        ({"receives_commands": False}, "default_endpoint_receives_commands"),
    ],
)
def test_an_endpoint_is_never_half_of_something(
    scene: Scene, sql: Connection, columns: dict[str, object], check: str
) -> None:
    with pytest.raises(psycopg.errors.CheckViolation, match=check), sql.transaction():
        change(sql, "webhooks_endpoint", scene.endpoint.pk, **columns)


def test_an_organization_has_one_default_endpoint(scene: Scene, sql: Connection) -> None:
    second = scene.another_endpoint()

    with (
        pytest.raises(psycopg.errors.UniqueViolation, match="one_default_endpoint"),
        sql.transaction(),
    ):
        change(sql, "webhooks_endpoint", second.pk, is_default=True)


def test_an_endpoint_has_one_current_secret(scene: Scene, sql: Connection) -> None:
    with (
        pytest.raises(psycopg.errors.UniqueViolation, match="one_current_secret"),
        sql.transaction(),
    ):
        sql.execute(
            "INSERT INTO webhooks_endpointsecret (endpoint_id, ciphertext) VALUES (%s, '')",
            [scene.endpoint.pk],
        )
