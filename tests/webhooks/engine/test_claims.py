"""Claims, one worker at a time: what is taken, in which turn, and with what."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db.models.functions import Now
from pytest_django import Settings

from commands import lifecycle
from organizations.clock import database_now
from tests import factories
from tests.factories import WORKER, Scene, delivery_of, new_scene, record
from tests.scenarios.workers import wait_for
from webhooks import endpoints, secrets
from webhooks.engine import claims
from webhooks.models import Attempt, Delivery, Endpoint, EndpointSecret
from webhooks.rules.policies import COMMAND

UNPROVEN = 2


@pytest.fixture
def proven(settings: Settings) -> None:
    """An endpoint has its full room from the start."""
    settings.ENDPOINT_UNPROVEN_IN_FLIGHT = 10_000


def taken(limit: int = 100) -> list[object]:
    """The endpoints of what one claim takes, in its order."""
    return [one.endpoint_id for one in claims.claim(limit, WORKER)]


def test_a_claim_reserves_the_attempt_before_anything_is_sent(scene: Scene) -> None:
    delivery = scene.send()
    due_at = delivery_of(delivery).next_attempt_at

    [claimed] = claims.claim(10, "host:1")

    delivery, attempt = delivery_of(delivery), Attempt.objects.get()
    assert (delivery.attempts, delivery.next_attempt_at) == (1, None)
    assert delivery.lease_until == attempt.claimed_at + timedelta(seconds=30)
    assert (attempt.delivery, attempt.number, attempt.worker) == (delivery, 1, "host:1")
    assert attempt.due_at == due_at
    assert (attempt.verdict, attempt.finished_at, attempt.started_at) == ("", None, None)
    assert (claimed.attempt_id, claimed.number) == (attempt.pk, 1)


def test_a_claim_brings_all_that_the_sender_needs(scene: Scene) -> None:
    delivery = scene.send(body=b'{"x": 1.10}')

    [claimed] = claims.claim(1, WORKER)

    assert claimed.delivery_id == delivery.pk
    assert claimed.event_id == delivery.event_id
    assert claimed.event_type == "test.event"
    assert claimed.body == b'{"x": 1.10}'
    assert claimed.url == scene.endpoint.url
    assert claimed.policy == COMMAND
    [ciphertext] = claimed.secret_ciphertexts
    assert secrets.decrypt(ciphertext).startswith("whsec_")


@pytest.mark.usefixtures("proven")
def test_during_a_rotation_both_secrets_sign_the_newest_first(scene: Scene) -> None:
    old = EndpointSecret.objects.get(endpoint=scene.endpoint)
    EndpointSecret.objects.filter(pk=old.pk).update(expires_at=Now() + timedelta(hours=1))
    new = EndpointSecret.objects.create(endpoint=scene.endpoint, ciphertext="newer")
    scene.send()
    scene.send()

    assert claims.claim(1, WORKER)[0].secret_ciphertexts == [new.ciphertext, old.ciphertext]
    EndpointSecret.objects.filter(pk=old.pk).update(expires_at=Now())
    assert claims.claim(1, WORKER)[0].secret_ciphertexts == [new.ciphertext]


def test_nothing_is_claimed_before_it_is_due(scene: Scene) -> None:
    delivery = scene.send()
    Delivery.objects.filter(pk=delivery.pk).update(next_attempt_at=Now() + timedelta(seconds=1))

    assert claims.claim(10, WORKER) == []


@pytest.mark.usefixtures("proven")
def test_no_attempt_begins_before_its_time_however_near_that_is(
    scene: Scene, settings: Settings
) -> None:
    """While others of its endpoint are due, so that the endpoint is looked at."""
    settings.ENDPOINT_MAX_IN_FLIGHT = 20
    sent = [scene.send().pk for _ in range(20)]
    now = database_now()
    for position, pk in enumerate(sent):
        due_at = now + timedelta(milliseconds=50 + 7 * position)
        Delivery.objects.filter(pk=pk).update(next_attempt_at=due_at)

    wait_for(lambda: not claims.claim(10, WORKER) and Attempt.objects.count() == len(sent))

    for attempt in Attempt.objects.all():
        assert attempt.claimed_at >= attempt.due_at


def test_what_is_in_flight_is_not_claimed_again(scene: Scene) -> None:
    scene.send()

    assert len(claims.claim(10, WORKER)) == 1
    assert claims.claim(10, WORKER) == []


def test_nothing_settled_is_claimed(scene: Scene) -> None:
    factories.fail_with(scene.send(), [200])
    factories.fail_with(scene.send(), [400])
    lifecycle.retract(scene.operator, scene.dispatched().pk)

    assert claims.claim(10, WORKER) == []


def test_nothing_starts_at_a_disabled_endpoint(scene: Scene) -> None:
    delivery = scene.send()
    # By hand, past the service that would have ended what waits.
    Endpoint.objects.filter(pk=scene.endpoint.pk).update(enabled=False, disabled_at=Now())

    assert claims.claim(10, WORKER) == []
    assert delivery_of(delivery).attempts == 0


@pytest.mark.usefixtures("proven")
def test_a_claim_takes_no_more_than_it_is_asked_for(scene: Scene) -> None:
    for _ in range(5):
        scene.send()

    assert [len(claims.claim(3, WORKER)) for _ in range(3)] == [3, 2, 0]


@pytest.mark.usefixtures("proven")
@pytest.mark.parametrize(("own", "cap"), [(None, 4), (2, 2), (6, 6)])
def test_an_endpoint_has_so_many_attempts_in_flight_and_no_more(
    scene: Scene, settings: Settings, own: int | None, cap: int
) -> None:
    settings.ENDPOINT_MAX_IN_FLIGHT = 4
    Endpoint.objects.filter(pk=scene.endpoint.pk).update(max_in_flight=own)
    for _ in range(8):
        scene.send()

    first = claims.claim(100, WORKER)
    assert len(first) == cap
    assert claims.claim(100, WORKER) == []
    record(*(factories.answer(attempt, 200) for attempt in first[:2]))
    assert len(claims.claim(100, WORKER)) == 2


def test_a_retracted_attempt_holds_its_place_while_it_is_on_the_wire(
    scene: Scene, settings: Settings
) -> None:
    settings.ENDPOINT_MAX_IN_FLIGHT = 1
    command, attempt = scene.on_the_wire()
    scene.send()
    lifecycle.retract(scene.operator, command.pk)

    assert claims.claim(10, WORKER) == []
    record(factories.answer(attempt, 200))
    assert len(claims.claim(10, WORKER)) == 1


# --- turns --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("proven")
def test_the_oldest_comes_first_at_an_endpoint(scene: Scene) -> None:
    sent = [scene.send().pk for _ in range(4)]
    for minutes, pk in enumerate([sent[2], sent[0], sent[3], sent[1]]):
        Delivery.objects.filter(pk=pk).update(next_attempt_at=Now() - timedelta(minutes=minutes))

    claimed = [one.delivery_id for one in claims.claim(10, WORKER)]

    assert claimed == [sent[1], sent[3], sent[0], sent[2]]


def test_a_backlog_does_not_push_another_endpoint_out_of_a_claim(scene: Scene) -> None:
    quiet = scene.another_endpoint()
    for _ in range(10):
        scene.send()
    scene.send(quiet)

    assert set(taken(2)) == {scene.endpoint.pk, quiet.pk}


@pytest.mark.usefixtures("proven")
def test_endpoints_take_turns_across_claims_of_one(scene: Scene) -> None:
    quiet, third = scene.another_endpoint(), scene.another_endpoint()
    for endpoint in [scene.endpoint] * 5 + [quiet] * 2 + [third]:
        scene.send(endpoint)

    order = [taken(1)[0] for _ in range(8)]

    busy = scene.endpoint.pk
    assert order == [busy, quiet.pk, third.pk, busy, quiet.pk, busy, busy, busy]


@pytest.mark.usefixtures("proven")
def test_an_endpoint_at_its_limit_leaves_the_claim_to_the_others(
    scene: Scene, settings: Settings
) -> None:
    settings.ENDPOINT_MAX_IN_FLIGHT = 2
    quiet = scene.another_endpoint()
    for _ in range(10):
        scene.send()
    assert taken(10) == [scene.endpoint.pk] * 2

    scene.send(quiet)

    assert taken(10) == [quiet.pk]


def test_endpoints_of_all_organizations_are_found(scene: Scene) -> None:
    targets = [scene.endpoint, new_scene("Another").endpoint, scene.another_endpoint("event")]
    for endpoint in targets:
        scene.send(endpoint)

    assert set(taken()) == {endpoint.pk for endpoint in targets}


@pytest.mark.usefixtures("proven")
def test_the_last_threads_are_for_endpoints_with_nothing_in_flight(scene: Scene) -> None:
    quiet = scene.another_endpoint()
    for endpoint in [scene.endpoint] * 10 + [quiet]:
        scene.send(endpoint)

    first = [one.endpoint_id for one in claims.claim(6, WORKER, reserve=4)]
    then = [one.endpoint_id for one in claims.claim(4, WORKER, reserve=4)]

    assert first == [scene.endpoint.pk, quiet.pk]
    assert then == []

    scene.send(late := scene.another_endpoint())

    assert [one.endpoint_id for one in claims.claim(4, WORKER, reserve=4)] == [late.pk]


# --- the clock ----------------------------------------------------------------------------------


def test_the_clock_sleeps_for_ever_when_nothing_waits(scene: Scene) -> None:
    assert claims.seconds_until_due() is None

    factories.claim(scene.send())

    assert claims.seconds_until_due() is None


def test_the_clock_knows_when_the_next_one_is_due(scene: Scene) -> None:
    now = database_now()
    for seconds in (60, 5, 600):
        Delivery.objects.filter(pk=scene.send().pk).update(
            next_attempt_at=now + timedelta(seconds=seconds)
        )

    due_in = claims.seconds_until_due()

    assert due_in is not None
    assert 0 < due_in <= 5


def test_the_clock_says_since_when_something_is_due(scene: Scene) -> None:
    Delivery.objects.filter(pk=scene.send().pk).update(next_attempt_at=Now() - timedelta(hours=1))

    due_in = claims.seconds_until_due()

    assert due_in is not None
    assert -3700 < due_in <= -3600


def test_a_disabled_endpoint_is_no_reason_to_be_awake(scene: Scene) -> None:
    scene.send()

    endpoints.disable(scene.owner, scene.endpoint.pk, "")

    assert claims.seconds_until_due() is None


# --- an endpoint earns its room by answering ----------------------------------------------------


def answered_last(scene: Scene, *statuses: int | None) -> None:
    """The endpoint's last attempts: an answer's status, or None for a timeout."""
    for status in statuses:
        attempt = factories.claim(scene.send())
        if status is None:
            record(factories.no_answer(attempt, "timeout"))
        else:
            record(factories.answer(attempt, status))
    Delivery.objects.filter(next_attempt_at__isnull=False).update(
        next_attempt_at=Now() + timedelta(hours=1)
    )


@pytest.mark.parametrize(
    ("last", "room"),
    [
        ((), UNPROVEN),
        ((200,), 8),
        ((500,), 8),  # an error is an answer: the receiver is not slow
        ((200, None), UNPROVEN),
        ((None, 200), 8),
    ],
)
def test_an_endpoint_that_gave_no_answer_gets_few_attempts_at_a_time(
    scene: Scene, last: tuple[int | None, ...], room: int
) -> None:
    answered_last(scene, *last)
    for _ in range(20):
        scene.send()
    assert len(claims.claim(100, WORKER)) == room
