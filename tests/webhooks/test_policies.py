"""Policies of this installation: chosen by endpoints, kept by deliveries, and taken away again."""

from __future__ import annotations

import json

import pytest
from django.core.checks import Tags, run_checks
from django.core.exceptions import ImproperlyConfigured

from config.settings import delivery_policies
from tests import factories
from tests.factories import Scene, delivery_of, make_due
from webhooks import endpoints, policies
from webhooks.models import Delivery, Endpoint
from webhooks.policies import POLICIES
from webhooks.rules.policies import (
    COMMAND,
    EVENT,
    PRESETS,
    DisableRule,
    Policy,
    RuleKind,
    terms_of,
)

FAST = Policy("fast", (0, 1, 2), True, DisableRule(RuleKind.ATTEMPTS_IN_A_ROW, 4))


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings add a policy."""
    monkeypatch.setitem(POLICIES, FAST.name, FAST)


def take_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(POLICIES, FAST.name)


# --- the setting --------------------------------------------------------------------------------


def test_the_setting_adds_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DELIVERY_POLICIES", json.dumps({"fast": terms_of(FAST)}))

    assert delivery_policies("DELIVERY_POLICIES") == {"fast": FAST}


@pytest.mark.parametrize("text", ["", "{}"])
def test_without_any_there_are_the_presets(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("DELIVERY_POLICIES", text)

    assert delivery_policies("DELIVERY_POLICIES") == {}


def test_one_that_cannot_work_stops_the_start_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DELIVERY_POLICIES", '{"command": {}}')

    with pytest.raises(ImproperlyConfigured, match=r"DELIVERY_POLICIES: command .* cannot be"):
        delivery_policies("DELIVERY_POLICIES")


# --- chosen -------------------------------------------------------------------------------------


def test_a_delivery_follows_its_endpoint_s_policy(scene: Scene) -> None:
    delivery = scene.send(scene.another_endpoint("fast"))

    factories.fail_with(delivery, [503] * 3)

    assert delivery_of(delivery).failure_reason == "attempts_exhausted"
    assert [a.number for a in factories.attempts(delivery)] == [1, 2, 3]


def test_its_rule_disables_the_endpoint(scene: Scene) -> None:
    endpoint = scene.another_endpoint("fast")
    for status in (503, 503, 503):
        factories.fail_with(scene.send(endpoint), [status])
    assert endpoints.health_of([endpoint])[endpoint.pk].failures_until_disabled == 1

    factories.fail_with(scene.send(endpoint), [503])

    endpoint.refresh_from_db()
    assert not endpoint.enabled


def test_a_rule_may_count_further_than_the_strip_shows(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = Policy("fast", (0,), True, DisableRule(RuleKind.DELIVERIES_IN_A_ROW, 25))
    monkeypatch.setitem(POLICIES, "fast", patient)
    endpoint = scene.another_endpoint("fast")
    for _ in range(24):
        factories.fail_with(scene.send(endpoint), [503])

    health = endpoints.health_of([endpoint])[endpoint.pk]

    assert (health.consecutive_failures, health.failures_until_disabled) == (24, 1)
    assert len(health.recent_outcomes) == 20
    factories.fail_with(scene.send(endpoint), [503])
    endpoint.refresh_from_db()
    assert not endpoint.enabled


def test_a_policy_that_nobody_defined_is_refused(scene: Scene) -> None:
    with pytest.raises(endpoints.FieldRefused, match="command, telemetry, event, fast"):
        scene.another_endpoint("slow")


@pytest.mark.parametrize("name", PRESETS)
def test_a_delivery_of_a_preset_keeps_its_name_alone(scene: Scene, name: str) -> None:
    delivery = scene.send(scene.another_endpoint(name))

    assert (delivery.policy, delivery.policy_terms) == (name, None)


# --- changed and taken away ---------------------------------------------------------------------


def test_a_delivery_keeps_the_policy_it_started_with(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = scene.another_endpoint("fast")
    early = scene.send(endpoint)
    changed = Policy("fast", (0,), False, FAST.disable_rule)
    monkeypatch.setitem(POLICIES, "fast", changed)
    late = scene.send(endpoint)

    factories.fail_with(early, [503])
    factories.fail_with(late, [503])

    assert delivery_of(early).schedule == FAST
    assert delivery_of(early).state == "pending"
    assert delivery_of(late).schedule == changed
    assert delivery_of(late).failure_reason == "attempts_exhausted"


def test_a_delivery_goes_on_when_its_policy_is_gone(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    delivery = scene.send(scene.another_endpoint("fast"))
    factories.fail_with(delivery, [503])
    take_away(monkeypatch)

    make_due(delivery.pk)
    factories.fail_with(delivery, [503])
    assert delivery_of(delivery).state == "pending"
    factories.fail_with(delivery, [400])

    assert delivery_of(delivery).failure_reason == "refused"


@pytest.mark.parametrize(("receives_commands", "preset"), [(True, COMMAND), (False, EVENT)])
def test_an_endpoint_whose_policy_is_gone_goes_on_with_a_preset(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, receives_commands: bool, preset: Policy
) -> None:
    endpoint = scene.another_endpoint("fast", receives_commands=receives_commands)
    take_away(monkeypatch)

    assert endpoint.schedule == preset
    assert scene.send(endpoint).policy == preset.name
    assert endpoints.health_of([endpoint])[endpoint.pk].failures_until_disabled > 0
    assert Endpoint.objects.get(pk=endpoint.pk).policy == "fast"


def test_what_kept_no_terms_still_reaches_an_end() -> None:
    assert policies.of_delivery("gone", None) == COMMAND


def gone() -> list[str]:
    found = run_checks(tags=[Tags.database], databases=["default"])
    return [message.msg for message in found if message.id == "webhooks.W001"]


def test_a_check_names_policies_that_are_used_and_gone(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint = scene.another_endpoint("fast")
    scene.another_endpoint("fast")
    assert gone() == []

    take_away(monkeypatch)

    [told] = gone()
    assert "the policy fast" in told
    endpoints.edit(scene.owner, endpoint.pk, {"policy": "event"})
    assert len(gone()) == 1


def test_deliveries_of_every_kind_can_be_read(scene: Scene) -> None:
    scene.send(scene.another_endpoint("fast"))
    endpoints.ping(scene.owner, scene.endpoint.pk)

    assert {d.schedule.name for d in Delivery.objects.all()} == {"fast", "ping"}
