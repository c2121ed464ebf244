"""Endpoints from the outside: registered, chosen, disabled, enabled, and their health."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from organizations.actors import NotPermitted
from organizations.clock import database_now
from organizations.models import AuditEntry
from organizations.provisioning import provision
from tests import factories
from tests.factories import Scene, delivery_of, fresh, new_endpoint, new_scene
from webhooks import endpoints, secrets
from webhooks.endpoints import NewEndpoint
from webhooks.engine import claims
from webhooks.models import Delivery, Endpoint, EndpointSecret
from webhooks.rules.addresses import UrlNotAllowed

PUBLIC = factories.RECEIVER_URL


# --- registered ---------------------------------------------------------------------------------


def test_a_new_endpoint_is_enabled_and_has_a_secret_that_is_told_once(scene: Scene) -> None:
    created = endpoints.create(scene.owner, NewEndpoint("Receiver", PUBLIC))

    endpoint = Endpoint.objects.get(pk=created.endpoint.pk)
    stored = EndpointSecret.objects.get(endpoint=endpoint)
    assert endpoint.enabled
    assert endpoint.organization == scene.organization
    assert secrets.decrypt(stored.ciphertext) == created.secret
    assert created.secret not in repr(created)


def test_an_endpoint_carries_events_unless_said_otherwise(scene: Scene) -> None:
    endpoint = endpoints.create(scene.owner, NewEndpoint("Receiver", PUBLIC)).endpoint

    assert (endpoint.policy, endpoint.receives_commands, endpoint.is_default) == (
        "event",
        False,
        False,
    )


@pytest.mark.parametrize(
    ("policy", "said", "receives"),
    [
        ("command", None, True),
        ("command", False, False),
        ("telemetry", None, False),
        ("event", True, True),
    ],
)
def test_receiving_commands_follows_from_the_policy_unless_said(
    scene: Scene, policy: str, said: bool | None, receives: bool
) -> None:
    endpoint = scene.another_endpoint(policy, receives_commands=said)

    assert endpoint.receives_commands is receives


def test_the_first_that_receives_commands_is_the_default_and_stays_it(scene: Scene) -> None:
    assert scene.endpoint.is_default
    assert not scene.another_endpoint().is_default


def test_one_that_receives_no_commands_does_not_become_the_default(db: None) -> None:
    owner = provision("Without endpoints").actor("owner")

    assert not new_endpoint(owner, "event").is_default
    assert new_endpoint(owner, "command").is_default


@pytest.mark.parametrize(
    "url",
    [
        "http://93.184.216.34/hook",
        "https://user:password@example.com/",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://10.0.0.1/",
        "https://169.254.169.254/latest/meta-data",
        "ftp://93.184.216.34/",
        "https://93.184.216.34/#part",
    ],
)
def test_a_url_that_webhooks_may_not_have_makes_nothing(scene: Scene, url: str) -> None:
    count = Endpoint.objects.count()

    with pytest.raises(UrlNotAllowed):
        endpoints.create(scene.owner, NewEndpoint("Receiver", url))

    assert Endpoint.objects.count() == count


@pytest.mark.usefixtures("loopback_allowed")
def test_settings_may_allow_receivers_on_this_machine(scene: Scene) -> None:
    endpoint = scene.another_endpoint(url="http://127.0.0.1:8099/hook")

    assert endpoint.url == "http://127.0.0.1:8099/hook"


def test_registering_is_audited_without_the_secret(scene: Scene) -> None:
    created = endpoints.create(
        scene.owner, NewEndpoint("Receiver", PUBLIC, event_types=["command.failed"])
    )

    entry = AuditEntry.objects.latest("pk")
    assert (entry.act, entry.target_id) == ("endpoint.create", str(created.endpoint.pk))
    assert entry.after["url"] == PUBLIC
    assert entry.after["eventTypes"] == ["command.failed"]
    assert "whsec_" not in str(entry.after)


# --- chosen -------------------------------------------------------------------------------------


def chosen(scene: Scene, named: Endpoint | None = None) -> Endpoint | None:
    return endpoints.for_commands(scene.organization.pk, named.pk if named else None)


def test_commands_go_to_the_named_endpoint_else_to_the_default(scene: Scene) -> None:
    named = scene.another_endpoint()

    assert chosen(scene) == scene.endpoint
    assert chosen(scene, named) == named


def test_a_named_endpoint_that_takes_no_commands_is_not_replaced_by_the_default(
    scene: Scene,
) -> None:
    assert chosen(scene, scene.another_endpoint("event")) is None


def test_another_organizations_endpoint_is_never_chosen(scene: Scene) -> None:
    assert chosen(scene, new_scene("Another").endpoint) is None


# --- disabled and enabled -----------------------------------------------------------------------


def test_disabling_by_hand_says_when_and_why(scene: Scene) -> None:
    before = database_now()

    endpoint = endpoints.disable(scene.owner, scene.endpoint.pk, "maintenance")

    assert not endpoint.enabled
    assert endpoint.disabled_at
    assert before <= endpoint.disabled_at <= database_now()
    assert endpoint.disabled_reason == "maintenance"


def test_disabling_ends_what_waits_and_leaves_what_flies(scene: Scene) -> None:
    waiting, (flying, _) = scene.dispatched(), scene.on_the_wire()
    elsewhere = scene.send(scene.another_endpoint())

    endpoints.disable(scene.owner, scene.endpoint.pk, "")

    assert delivery_of(waiting).failure_reason == "endpoint_disabled"
    assert fresh(waiting).state == "failed"
    assert delivery_of(flying).lease_until
    assert fresh(flying).state == "queued"
    assert delivery_of(elsewhere).state == Delivery.State.PENDING


def test_disabling_again_changes_nothing(scene: Scene) -> None:
    first = endpoints.disable(scene.owner, scene.endpoint.pk, "maintenance")
    entries = AuditEntry.objects.count()

    again = endpoints.disable(scene.owner, scene.endpoint.pk, "another reason")

    assert (again.disabled_at, again.disabled_reason) == (first.disabled_at, "maintenance")
    assert AuditEntry.objects.count() == entries


def test_enabling_starts_counters_from_zero_and_replays_nothing(scene: Scene) -> None:
    delivery = scene.send()
    factories.fail_with(delivery, [503] * 3)
    endpoints.disable(scene.owner, scene.endpoint.pk, "maintenance")

    endpoint = endpoints.enable(scene.owner, scene.endpoint.pk)

    assert (endpoint.enabled, endpoint.disabled_at, endpoint.disabled_reason) == (True, None, "")
    assert endpoints.health_of([endpoint])[endpoint.pk].recent_outcomes == ()
    assert delivery_of(delivery).state == "failed"
    assert claims.claim(10, factories.WORKER) == []


def test_enabling_what_is_enabled_does_not_reset_its_counters(scene: Scene) -> None:
    factories.fail_with(scene.send(), [503] * 3)
    entries = AuditEntry.objects.count()

    endpoint = endpoints.enable(scene.owner, scene.endpoint.pk)

    assert endpoints.health_of([endpoint])[endpoint.pk].consecutive_failures == 3
    assert AuditEntry.objects.count() == entries


def test_disabling_and_enabling_are_audited_with_before_and_after(scene: Scene) -> None:
    endpoints.disable(scene.owner, scene.endpoint.pk, "maintenance")
    endpoints.enable(scene.owner, scene.endpoint.pk)

    enabled, disabled = AuditEntry.objects.order_by("-pk")[:2]
    assert (disabled.act, enabled.act) == ("endpoint.disable", "endpoint.enable")
    assert (disabled.before["enabled"], disabled.after["enabled"]) == (True, False)
    assert disabled.after["disabledReason"] == "maintenance"
    assert (enabled.before["enabled"], enabled.after["enabled"]) == (False, True)


ACTS: dict[str, Any] = {
    "create": lambda scene, actor: new_endpoint(actor),
    "disable": lambda scene, actor: endpoints.disable(actor, scene.endpoint.pk, ""),
    "enable": lambda scene, actor: endpoints.enable(actor, scene.endpoint.pk),
}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("role", ["operator", "viewer"])
def test_only_an_owner_changes_endpoints(scene: Scene, act: str, role: str) -> None:
    with pytest.raises(NotPermitted):
        ACTS[act](scene, scene.provisioned.actor(role))


@pytest.mark.parametrize("act", ["disable", "enable"])
def test_nobody_changes_another_organizations_endpoint(scene: Scene, act: str) -> None:
    with pytest.raises(Endpoint.DoesNotExist):
        ACTS[act](scene, new_scene("Another").owner)


# --- health -------------------------------------------------------------------------------------


def test_health_of_many_endpoints_takes_one_query(scene: Scene) -> None:
    others = [scene.another_endpoint(policy) for policy in ("command", "event", "telemetry")]
    for endpoint in others:
        factories.fail_with(scene.send(endpoint), [503])

    with CaptureQueriesContext(connection) as captured:
        found = endpoints.health_of([scene.endpoint, *others])

    assert len(captured) == 1
    counted = {pk: health.consecutive_failures for pk, health in found.items()}
    # An event that still waits for its retry has not failed yet.
    assert counted == dict(
        zip([e.pk for e in (scene.endpoint, *others)], [0, 1, 0, 1], strict=True)
    )


def test_health_shows_the_last_twenty(scene: Scene) -> None:
    for _ in range(21):
        factories.fail_with(scene.send(), [200])

    health = endpoints.health_of([scene.endpoint])[scene.endpoint.pk]

    assert health.recent_outcomes == ("delivered",) * 20


def test_health_of_nothing_is_nothing(scene: Scene) -> None:
    assert endpoints.health_of([]) == {}
