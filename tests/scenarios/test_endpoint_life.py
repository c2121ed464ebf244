"""An endpoint that fails too often and what its owner does about it, with real workers and sockets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from organizations.rules import roles
from tests.factories import Scene, delivery_of
from tests.organizations.api.client import Api, content, problem
from tests.receivers import ScriptedReceiver, Visit, respond
from tests.scenarios.workers import Workers, receiving, wait_for
from webhooks.models import Attempt, Delivery, Endpoint, Event
from webhooks.policies import POLICIES
from webhooks.rules.policies import DisableRule, Policy, RuleKind, terms_of

pytestmark = pytest.mark.django_db(transaction=True)

# `event` with shorter waits, so that five deliveries end in seconds.
BRISK = Policy("brisk", (0, 1), False, DisableRule(RuleKind.DELIVERIES_IN_A_ROW, 5))


@pytest.fixture
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy of the settings, here and in the workers."""
    monkeypatch.setitem(POLICIES, BRISK.name, BRISK)
    monkeypatch.setenv("DELIVERY_POLICIES", json.dumps({BRISK.name: terms_of(BRISK)}))


@pytest.fixture
def workers(scene: Scene, tmp_path: Path, brisk: None) -> Iterator[Workers]:
    with Workers.at_work(tmp_path) as running:
        yield running


class Mood:
    """A receiver that answers with one status until it is told another."""

    def __init__(self, status: int) -> None:
        self.status = status

    def __call__(self, visit: Visit) -> None:
        respond(self.status)(visit)


def endpoint_of(scene: Scene, api: Api) -> dict[str, Any]:
    shown: dict[str, Any] = content(api.get(f"webhooks/endpoints/{scene.endpoint.pk}"))
    return shown


def pinged(scene: Scene, api: Api) -> Attempt:
    """Ping the endpoint and wait for what comes of it."""
    told = content(api.post(f"webhooks/endpoints/{scene.endpoint.pk}/ping"))
    made = Attempt.objects.filter(delivery_id=told["deliveryId"], finished_at__isnull=False)
    attempt = wait_for(made.first)
    assert attempt
    return attempt


def test_twenty_failures_disable_an_endpoint_and_its_owner_brings_it_back(
    scene: Scene, workers: Workers
) -> None:
    owner, operator = Api.of(scene), Api.of(scene, roles.OPERATOR)
    path, mood = f"webhooks/endpoints/{scene.endpoint.pk}", Mood(503)
    with receiving(scene.endpoint, mood) as receiver:
        commands = [scene.dispatched() for _ in range(20)]
        wait_for(lambda: not endpoint_of(scene, owner)["enabled"])

        assert len(receiver.requests) == 20
        assert {delivery_of(command).failure_reason for command in commands} == {
            "endpoint_disabled"
        }
        assert Event.objects.filter(type="endpoint.disabled").count() == 1
        refused = operator.post("commands/dispatch", {"commandId": str(scene.issued().pk)})
        problem(refused, 409, "endpoint_disabled")
        problem(operator.post(f"{path}/enable"), 403, "missing_scope")

        assert pinged(scene, owner).status_code == 503
        mood.status = 204
        assert pinged(scene, owner).status_code == 204
        assert receiver.requests[-1].headers["x-webhook-event"] == "ping"
        assert not endpoint_of(scene, owner)["enabled"]

        assert content(owner.post(f"{path}/enable"))["health"]["consecutiveFailures"] == 0
        assert len(receiver.requests) == 22  # nothing is replayed
        mood.status = 503
        failing = scene.dispatched()
        wait_for(lambda: Attempt.objects.filter(delivery__command_id=failing.pk).first())
        wait_for(lambda: endpoint_of(scene, owner)["health"]["consecutiveFailures"])

    shown = endpoint_of(scene, owner)
    assert shown["enabled"]
    assert shown["health"]["failuresUntilDisabled"] == 19


def ended(deliveries: list[Delivery]) -> bool:
    return all(delivery_of(one).settled_at for one in deliveries)


def test_five_deliveries_in_a_row_disable_one_for_events_and_a_success_resets(
    scene: Scene, workers: Workers
) -> None:
    endpoint = scene.another_endpoint("brisk", event_types=["order.*"])

    def published(count: int) -> None:
        events = [scene.published(n=n) for n in range(count)]
        deliveries = [event.deliveries.get() for event in events]
        wait_for(lambda: ended(deliveries))

    mood = Mood(500)
    with receiving(endpoint, mood):
        published(4)
        mood.status = 200
        published(1)
        mood.status = 500
        published(4)
        assert Endpoint.objects.get(pk=endpoint.pk).enabled
        published(1)

    endpoint.refresh_from_db()
    assert not endpoint.enabled
    assert endpoint.disabled_reason == "failed_5_times_in_a_row"
    assert scene.published().deliveries.count() == 0


def test_after_a_change_of_address_nothing_more_comes_to_the_old_one(
    scene: Scene, workers: Workers, loopback_allowed: None
) -> None:
    owner = Api.of(scene)
    with receiving(scene.endpoint, respond(200)) as old, ScriptedReceiver(respond(200)) as new:
        first = [scene.send() for _ in range(40)]
        wait_for(lambda: old.requests)
        answer = owner.patch(f"webhooks/endpoints/{scene.endpoint.pk}", {"url": new.url})
        changed = content(answer)["health"]["since"]
        then = [scene.send() for _ in range(10)]
        wait_for(lambda: ended([*first, *then]))

    claimed_before = Attempt.objects.filter(claimed_at__lt=changed).count()
    assert len(old.requests) == claimed_before
    assert len(old.requests) + len(new.requests) == 50
    assert len(new.requests) >= 10
