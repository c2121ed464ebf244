"""Sending from the rest of the code: rows that commit together, and a wake-up when they do."""

from __future__ import annotations

import psycopg
import pytest
from django.db import connection, transaction

from commands import lifecycle
from organizations.clock import database_now
from tests import factories
from tests.factories import Scene, delivery_of, new_scene
from webhooks import publishing
from webhooks.models import Delivery, Event


def test_a_delivery_is_due_at_once_with_the_bytes_it_was_given(scene: Scene) -> None:
    body = '{"x":1.10,"name":"café"}'.encode()

    delivery = delivery_of(scene.send(body=body))

    assert delivery.state == Delivery.State.PENDING
    assert delivery.next_attempt_at
    assert delivery.next_attempt_at <= database_now()
    assert (delivery.attempts, delivery.lease_until) == (0, None)
    assert bytes(delivery.event.body) == body
    assert delivery.event.organization == scene.organization
    assert not delivery.event.published


@pytest.mark.parametrize("policy", ["command", "telemetry", "event"])
def test_a_delivery_starts_with_the_policy_of_its_endpoint(scene: Scene, policy: str) -> None:
    assert scene.send(scene.another_endpoint(policy)).policy == policy


def test_a_message_id_belongs_to_the_event(scene: Scene) -> None:
    event = scene.send().event

    assert event.message_id == f"msg_{event.pk.hex}"


def test_nothing_is_queued_by_a_transaction_that_fails(scene: Scene) -> None:
    def send_and_fail() -> None:
        with transaction.atomic():
            scene.send()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        send_and_fail()

    assert not Delivery.objects.exists()
    assert not Event.objects.exists()


def test_a_cancelled_delivery_is_over(scene: Scene) -> None:
    delivery = scene.send()

    assert publishing.cancel(delivery.pk) is False

    delivery = delivery_of(delivery)
    assert (delivery.state, delivery.next_attempt_at) == (Delivery.State.CANCELLED, None)
    assert delivery.settled_at


def test_cancelling_says_that_an_attempt_is_on_the_wire(scene: Scene) -> None:
    delivery = scene.send()
    factories.claim(delivery)

    assert publishing.cancel(delivery.pk) is True

    assert delivery_of(delivery).lease_until


@pytest.mark.parametrize("status", [200, 400])
def test_cancelling_what_has_ended_changes_nothing(scene: Scene, status: int) -> None:
    delivery = scene.send()
    factories.fail_with(delivery, [status])
    before = delivery_of(delivery)

    assert publishing.cancel(delivery.pk) is False

    after = delivery_of(delivery)
    assert (after.state, after.settled_at) == (before.state, before.settled_at)


def listener() -> psycopg.Connection[object]:
    parameters = connection.get_connection_params()
    chosen = {
        k: parameters[k] for k in ("dbname", "user", "password", "host", "port") if k in parameters
    }
    client: psycopg.Connection[object] = psycopg.connect(**chosen, autocommit=True)
    client.execute(f"LISTEN {publishing.DUE_CHANNEL}".encode())
    return client


@pytest.mark.django_db(transaction=True)
def test_the_commit_of_a_dispatch_wakes_the_engine() -> None:
    scene = new_scene()
    command = scene.issued()

    with listener() as client:
        with transaction.atomic():
            lifecycle.dispatch(scene.operator, command.pk)
            assert list(client.notifies(timeout=0)) == [], "not before the commit"
        [notice] = client.notifies(timeout=5, stop_after=1)

    assert notice.channel == publishing.DUE_CHANNEL
    assert notice.payload == "", "ids and bodies have no business on a channel that all can hear"
