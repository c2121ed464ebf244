"""An endpoint that fails too often and what its owner does about it: real workers, sockets and mail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from organizations.models import Notice
from organizations.rules import roles
from tests.factories import Scene, delivery_of, make_due
from tests.mail_sink import MailSink
from tests.organizations.api.client import Api, content, problem
from tests.receivers import ScriptedReceiver, Visit, respond
from tests.scenarios.workers import Workers, receiving, wait_for
from webhooks.models import Attempt, Delivery, Endpoint, Event

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sink() -> Iterator[MailSink]:
    with MailSink() as running:
        yield running


@pytest.fixture
def workers(
    scene: Scene, sink: MailSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Workers]:
    monkeypatch.setenv("EMAIL_URL", sink.url)
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


def disablings_mailed(sink: MailSink, to: str) -> list[str]:
    """The subjects of the mails to somebody that tell of a disabled endpoint."""
    told = (str(mail["Subject"]) for mail in sink.mails if mail["To"] == to)
    return [subject for subject in told if subject.startswith("Endpoint disabled")]


def test_twenty_failures_disable_an_endpoint_and_its_owner_brings_it_back(
    scene: Scene, workers: Workers, sink: MailSink
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
    wait_for(lambda: not Notice.objects.exclude(state="sent").exists())
    assert len(disablings_mailed(sink, scene.owner.user.email)) == 1
    assert not disablings_mailed(sink, scene.operator.user.email)


def ended(deliveries: list[Delivery]) -> bool:
    return all(delivery_of(one).settled_at for one in deliveries)


def ended_without_waiting(deliveries: list[Delivery]) -> bool:
    """The same, retries brought forward to now."""
    ids = [delivery.pk for delivery in deliveries]
    waiting = Delivery.objects.filter(pk__in=ids, next_attempt_at__gt=Now())
    make_due(*waiting.values_list("pk", flat=True))
    return ended(deliveries)


def test_five_deliveries_in_a_row_disable_one_for_events_and_a_success_resets(
    scene: Scene, workers: Workers, sink: MailSink
) -> None:
    endpoint = scene.another_endpoint("event", name="Ledger", event_types=["order.*"])
    path, owner = f"webhooks/endpoints/{endpoint.pk}", Api.of(scene)

    def published(count: int) -> None:
        events = [scene.published(n=n) for n in range(count)]
        deliveries = [event.deliveries.get() for event in events]
        wait_for(lambda: ended_without_waiting(deliveries))

    mood = Mood(500)
    with receiving(endpoint, mood) as receiver:
        published(4)
        mood.status = 200
        published(1)
        mood.status = 500
        published(4)
        assert content(owner.get(path))["health"]["failuresUntilDisabled"] == 1
        assert Endpoint.objects.get(pk=endpoint.pk).enabled
        published(1)
        assert not content(owner.get(path))["enabled"]
        assert scene.published().deliveries.count() == 0

        problem(Api.of(scene, roles.OPERATOR).post(f"{path}/enable"), 403, "missing_scope")
        assert content(owner.post(f"{path}/enable"))["enabled"]
        published(1)

    assert len(receiver.requests) == 3 * 4 + 1 + 3 * 4 + 3 + 3
    shown = content(owner.get(path))
    assert (shown["enabled"], shown["health"]["failuresUntilDisabled"]) == (True, 4)
    wait_for(lambda: not Notice.objects.exclude(state="sent").exists())
    [subject] = disablings_mailed(sink, scene.owner.user.email)
    assert subject == "Endpoint disabled: Ledger (Test organization)"


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
