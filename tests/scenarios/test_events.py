"""Events end to end: real workers, real receivers, and the clock of policy ``event``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from standardwebhooks.webhooks import Webhook

from organizations.rules import roles
from tests.factories import Scene
from tests.organizations.api.client import Api, content
from tests.receivers import hang, respond
from tests.scenarios.workers import Workers, receiving, wait_for
from webhooks import secrets
from webhooks.models import Attempt, Delivery, Endpoint, Event

pytestmark = pytest.mark.django_db(transaction=True)

# A busy machine may start an attempt this much late, seconds; never early.
LATE_S = 3.0


@pytest.fixture
def workers(scene: Scene, tmp_path: Path) -> Iterator[Workers]:
    with Workers.at_work(tmp_path) as running:
        yield running


def subscriber(scene: Scene, *event_types: str) -> Endpoint:
    return scene.another_endpoint("event", event_types=event_types)


def delivered(event_type: str) -> int:
    return Delivery.objects.filter(event__type=event_type, state="delivered").count()


def test_an_event_reaches_its_subscribers_signed_by_each_one_s_secret(
    scene: Scene, workers: Workers
) -> None:
    first, second = subscriber(scene, "order.*"), subscriber(scene, "*")
    data = '{"price":1.10,"n":12345678901234567890123,"t":"é🚀","o":{}}'
    with receiving(first, respond(200)) as one, receiving(second, respond(204)) as two:
        answer = Api.of(scene, roles.OPERATOR).send(
            "events", f'{{"type":"order.created","data":{data}}}'
        )
        wait_for(lambda: delivered("order.created") == 2)

    event = Event.objects.get(pk=content(answer)["id"])
    for endpoint, receiver in ((first, one), (second, two)):
        [request] = receiver.requests
        secret = secrets.decrypt(endpoint.secrets.get().ciphertext)
        Webhook(secret).verify(request.body, request.headers)
        assert request.body == bytes(event.body)
        assert request.body.endswith(f'"data":{data}}}'.encode())
        assert request.headers["webhook-id"] == event.message_id
        assert request.headers["x-webhook-event"] == "order.created"
        assert request.headers["x-webhook-hops"] == "0"


def test_what_happens_to_a_command_is_told_by_the_workers_that_deliver_it(
    scene: Scene, workers: Workers
) -> None:
    watcher = subscriber(scene, "command.*")
    with receiving(scene.endpoint, respond(200)), receiving(watcher, respond(200)) as watched:
        scene.dispatched(ack_timeout_s=1)
        wait_for(lambda: delivered("command.timed_out"))

    told = [request.headers["x-webhook-event"] for request in watched.requests]
    assert told == ["command.delivered", "command.timed_out"]
    assert Event.objects.filter(published=True).count() == 2, "their own deliveries are not told"


def test_policy_event_tries_three_times_within_its_windows(scene: Scene, workers: Workers) -> None:
    """After a failure at once at 0, 5 and 15 s; after ten seconds of silence at 0, 15 and 35 s."""
    failing, silent = subscriber(scene, "order.*"), subscriber(scene, "order.*")
    with receiving(failing, respond(400)) as quick, receiving(silent, hang) as slow:
        event = scene.published("order.created")
        wait_for(lambda: len(slow.requests) == 3)

    assert len(quick.requests) == 3
    assert {request.body for request in quick.requests + slow.requests} == {bytes(event.body)}
    for endpoint, earliest in ((failing, (0.0, 5.0, 15.0)), (silent, (0.0, 15.0, 35.0))):
        for start, bound in zip(starts(endpoint), earliest, strict=True):
            assert bound <= start <= bound + LATE_S
    [ended] = Delivery.objects.filter(endpoint=failing)
    assert (ended.state, ended.attempts) == ("failed", 3)


def starts(endpoint: Endpoint) -> list[float]:
    """When each attempt began, in seconds after the first."""
    attempts = Attempt.objects.filter(endpoint=endpoint).order_by("number")
    times = [attempt.started_at or attempt.claimed_at for attempt in attempts]
    return [(at - times[0]).total_seconds() for at in times]
