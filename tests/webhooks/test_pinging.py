"""A ping: one attempt at one endpoint, enabled or not, which counts for no rule."""

from __future__ import annotations

import pytest

from organizations.actors import NotPermitted
from organizations.clock import rfc3339
from organizations.models import AuditEntry
from tests import factories
from tests.factories import Scene, delivery_of, new_scene
from webhooks import endpoints, feed
from webhooks.engine import claims, tasks
from webhooks.models import Delivery, Endpoint, Event


def ping(scene: Scene) -> Delivery:
    return endpoints.ping(scene.owner, scene.endpoint.pk)


def test_it_is_an_event_for_this_endpoint_alone(scene: Scene) -> None:
    scene.another_endpoint("event", event_types=["*"])

    delivery = ping(scene)

    assert (delivery.event.type, delivery.is_ping, delivery.endpoint) == (
        "ping",
        True,
        scene.endpoint,
    )
    assert delivery.event.value["data"]["endpoint"]["id"] == str(scene.endpoint.pk)
    assert delivery.event.deliveries.count() == 1
    assert feed.read(scene.organization.pk, 0, 50, "*").events == []


def test_it_has_the_form_of_a_published_event(scene: Scene) -> None:
    pinged, published = ping(scene).event, scene.published()

    assert list(pinged.value) == list(published.value) == ["id", "type", "timestamp", "data"]
    assert pinged.value["id"] == str(pinged.pk)
    assert pinged.value["type"] == "ping"
    assert pinged.value["timestamp"] == rfc3339(pinged.created_at)


@pytest.mark.parametrize(
    ("status", "state"), [(200, "delivered"), (503, "failed"), (404, "failed"), (301, "failed")]
)
@pytest.mark.parametrize("policy", ["command", "telemetry", "event"])
def test_there_is_one_attempt_whatever_comes_of_it(
    scene: Scene, policy: str, status: int, state: str
) -> None:
    delivery = endpoints.ping(scene.owner, scene.another_endpoint(policy).pk)

    factories.fail_with(delivery, [status])

    assert delivery_of(delivery).state == state
    assert len(factories.attempts(delivery)) == 1


@pytest.mark.parametrize("end", ["timeout", "blocked_address", "lost"])
def test_one_without_an_answer_ends_it_too(scene: Scene, end: str) -> None:
    delivery = ping(scene)

    factories.record(factories.ending(factories.claim(delivery), end))

    assert delivery_of(delivery).state == "failed"


def test_a_disabled_endpoint_can_be_tested(scene: Scene) -> None:
    endpoints.disable(scene.owner, scene.endpoint.pk, "broken")

    delivery = ping(scene)
    [claimed] = claims.claim(10, factories.WORKER)

    assert claimed.delivery_id == delivery.pk
    factories.record(factories.answer(claimed, 200))
    assert delivery_of(delivery).state == "delivered"
    scene.endpoint.refresh_from_db()
    assert not scene.endpoint.enabled


def test_neither_disabling_nor_the_sweep_ends_one_that_waits(scene: Scene) -> None:
    delivery, other = ping(scene), scene.send()

    endpoints.disable(scene.owner, scene.endpoint.pk, "broken")
    tasks.sweep_leases()

    assert delivery_of(delivery).state == "pending"
    assert delivery_of(other).failure_reason == "endpoint_disabled"


def test_only_the_ping_starts_where_something_else_was_stranded(scene: Scene) -> None:
    endpoints.disable(scene.owner, scene.endpoint.pk, "broken")
    stranded, delivery = scene.send(), ping(scene)

    [claimed] = claims.claim(10, factories.WORKER)
    assert claimed.delivery_id == delivery.pk

    tasks.sweep_leases()
    assert delivery_of(stranded).failure_reason == "endpoint_disabled"
    assert delivery_of(delivery).lease_until


def test_pings_count_for_no_rule_and_appear_in_no_figure(scene: Scene) -> None:
    for _ in range(25):
        factories.fail_with(ping(scene), [503])

    scene.endpoint.refresh_from_db()
    assert scene.endpoint.enabled
    assert endpoints.health_of([scene.endpoint])[scene.endpoint.pk].recent_outcomes == ()
    assert endpoints.figures_of([scene.endpoint])[scene.endpoint.pk].attempts == 0


def test_it_is_audited(scene: Scene) -> None:
    delivery = ping(scene)

    entry = AuditEntry.objects.latest("pk")
    assert (entry.act, entry.after) == ("endpoint.ping", {"deliveryId": str(delivery.pk)})


@pytest.mark.parametrize("role", ["operator", "viewer"])
def test_only_an_owner_pings(scene: Scene, role: str) -> None:
    with pytest.raises(NotPermitted):
        endpoints.ping(scene.provisioned.actor(role), scene.endpoint.pk)
    assert not Event.objects.filter(type="ping").exists()


def test_nobody_pings_another_organization_s(scene: Scene) -> None:
    with pytest.raises(Endpoint.DoesNotExist):
        endpoints.ping(new_scene("Another").owner, scene.endpoint.pk)
