"""One event becomes one delivery for each endpoint that subscribes to it, in one transaction."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.db import transaction

from organizations import exact_json
from organizations.clock import database_now, rfc3339
from tests import factories
from tests.factories import Scene, new_scene
from tests.racing import race
from tests.statements import counted
from tests.webhooks.test_publishing import listener
from webhooks import endpoints, publishing
from webhooks.engine import tasks
from webhooks.models import Delivery, Endpoint, Event
from webhooks.publishing import Publication


def subscriber(scene: Scene, *event_types: str, policy: str = "event") -> Endpoint:
    return scene.another_endpoint(policy, event_types=event_types)


def receivers(event: Event) -> set[Endpoint]:
    return {delivery.endpoint for delivery in event.deliveries.all()}


def test_an_event_goes_to_those_who_subscribe_to_its_type_and_to_nobody_else(scene: Scene) -> None:
    exact = subscriber(scene, "order.created")
    prefix = subscriber(scene, "invoice.*", "order.*")
    everything = subscriber(scene, "*")
    subscriber(scene, "order.cancelled", "invoice.*", "order")
    subscriber(scene)

    assert receivers(scene.published("order.created")) == {exact, prefix, everything}
    assert receivers(scene.published("order.paid")) == {prefix, everything}
    assert receivers(scene.published("ordering.paid")) == {everything}


def test_two_subscriptions_that_cover_it_are_one_delivery(scene: Scene) -> None:
    subscriber(scene, "order.created", "order.*", "*")

    assert scene.published("order.created").deliveries.count() == 1


def test_an_event_that_nobody_subscribes_to_is_kept_all_the_same(scene: Scene) -> None:
    event = scene.published()

    assert event.deliveries.count() == 0
    assert Event.objects.get(published=True) == event


def test_an_event_stays_within_its_organization(scene: Scene) -> None:
    subscriber(new_scene("Strangers"), "*")
    ours = subscriber(scene, "*")

    assert receivers(scene.published()) == {ours}


def test_the_body_is_frozen_once_with_every_digit(scene: Scene) -> None:
    event = publishing.publish(
        scene.organization.pk, "order.created", {"price": Decimal("1.10"), "n": 10**30, "é": "🚀"}
    )

    body = bytes(Event.objects.get(pk=event.pk).body)
    value = exact_json.loads(body)
    assert list(value) == ["id", "type", "timestamp", "data"]
    assert (value["id"], value["type"]) == (str(event.pk), "order.created")
    digits = "1" + "0" * 30
    assert body.endswith(f'"data":{{"price":1.10,"n":{digits},"é":"🚀"}}}}'.encode())


def test_all_deliveries_share_the_one_body(scene: Scene) -> None:
    subscriber(scene, "*")
    subscriber(scene, "*")
    event = scene.published()

    assert Event.objects.count() == 1
    first, second = event.deliveries.all()
    sent = [factories.claim(delivery) for delivery in (first, second)]
    assert sent[0].body == sent[1].body == bytes(event.body)
    assert sent[0].event_id == sent[1].event_id == event.pk


@pytest.mark.parametrize("policy", ["command", "telemetry", "event"])
def test_a_delivery_starts_with_the_policy_of_its_endpoint(scene: Scene, policy: str) -> None:
    subscriber(scene, "*", policy=policy)

    [delivery] = scene.published().deliveries.all()

    assert (delivery.policy, delivery.state, delivery.command_id) == (policy, "pending", None)


def test_a_disabled_endpoint_is_skipped_and_nothing_is_replayed_when_it_is_enabled(
    scene: Scene,
) -> None:
    endpoint = subscriber(scene, "order.*")
    endpoints.disable(scene.owner, endpoint.pk, "maintenance")
    missed = scene.published()
    endpoints.enable(scene.owner, endpoint.pk)

    assert receivers(scene.published()) == {endpoint}
    assert receivers(missed) == set()


def test_an_archived_endpoint_is_skipped(scene: Scene) -> None:
    endpoint = subscriber(scene, "*")
    endpoints.archive(scene.owner, endpoint.pk)

    assert receivers(scene.published()) == set()


def test_an_endpoint_for_commands_gets_events_only_if_it_subscribes(scene: Scene) -> None:
    assert receivers(scene.published()) == set()


def test_nothing_of_an_event_is_left_by_a_transaction_that_fails(scene: Scene) -> None:
    subscriber(scene, "*")

    def publish_and_fail() -> None:
        with transaction.atomic():
            scene.published()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        publish_and_fail()

    assert not Event.objects.exists()
    assert not Delivery.objects.exists()


def test_a_hundred_events_for_two_hundred_endpoints_take_as_many_statements_as_one_for_one(
    scene: Scene,
) -> None:
    def statements(count: int) -> int:
        batch = [Publication(scene.organization.pk, "a.b", {"n": n}) for n in range(count)]
        with counted() as captured:
            publishing.publish_many(batch)
        return len(captured)

    subscriber(scene, "*")
    few = statements(1)
    for n in range(199):
        Endpoint.objects.create(
            organization=scene.organization,
            name=f"Receiver {n}",
            url=factories.RECEIVER_URL,
            policy="event",
            event_types=["a.*"],
        )

    assert statements(1) == few
    assert Delivery.objects.count() == 1 + 200
    assert statements(100) == few
    assert Delivery.objects.count() == 1 + 200 + 100 * 200


def test_where_nobody_subscribes_two_statements_tell_of_a_hundred_facts(scene: Scene) -> None:
    now = database_now()
    batch = [Publication(scene.organization.pk, "a.b", {}, at=now) for _ in range(100)]

    with counted() as captured:
        publishing.publish_many(batch)

    assert len(captured) == 2


def test_publishing_nothing_asks_the_database_nothing() -> None:
    assert publishing.publish_many([]) == []


def test_a_fact_is_told_with_the_time_at_which_it_happened(scene: Scene) -> None:
    at = scene.issued().issued_at

    [event] = publishing.publish_many([Publication(scene.organization.pk, "a.b", {}, at=at)])

    assert exact_json.loads(event.body)["timestamp"] == rfc3339(at)


@pytest.mark.django_db(transaction=True)
def test_the_commit_of_an_event_wakes_the_engine_if_anybody_subscribes(scene: Scene) -> None:
    with listener() as client:
        scene.published()
        assert list(client.notifies(timeout=0.2)) == []
        subscriber(scene, "*")
        scene.published()
        assert len(list(client.notifies(timeout=5, stop_after=1))) == 1


@pytest.mark.django_db(transaction=True)
def test_an_event_that_races_with_the_disabling_of_an_endpoint_leaves_nothing_waiting(
    scene: Scene,
) -> None:
    """No endpoint is locked by an event. What is left at a disabled one is never sent, and ended."""
    endpoint = subscriber(scene, "*")

    with transaction.atomic():
        event = scene.published()
        [disabled] = race(lambda: endpoints.disable(scene.owner, endpoint.pk, "race"))
    assert not disabled.result().enabled

    [delivery] = event.deliveries.all()
    assert delivery.state == "pending"
    tasks.sweep_leases()
    delivery.refresh_from_db()
    assert (delivery.state, delivery.failure_reason, delivery.attempts) == (
        "failed",
        "endpoint_disabled",
        0,
    )
