"""Endpoints changed while workers claim and record, and while others change them too."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import transaction
from pytest_django import Settings

from commands import lifecycle
from organizations.clock import database_now
from organizations.models import Notice
from tests import factories
from tests.factories import Scene, new_scene, record
from tests.racing import (
    PATIENCE_S,
    meanwhile,
    race,
    results,
    wait_until_waiting,
    with_own_connection,
)
from webhooks import endpoints
from webhooks.engine import claims, tasks
from webhooks.engine.claims import Claimed
from webhooks.models import Delivery, Endpoint, EndpointSecret, Event

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 8
ELSEWHERE = "https://93.184.216.35/elsewhere"


@pytest.fixture
def scene(settings: Settings) -> Scene:
    """Its endpoints have their full room from the start."""
    settings.ENDPOINT_UNPROVEN_IN_FLIGHT = settings.ENDPOINT_MAX_IN_FLIGHT = 100
    return new_scene()


def flying(scene: Scene, count: int) -> list[Claimed]:
    for _ in range(count):
        scene.send()
    attempts = claims.claim(count + 1, factories.WORKER)
    assert len(attempts) == count
    return attempts


# --- an edit and the claims ---------------------------------------------------------------------


def test_an_edit_returns_when_no_claim_is_under_way_that_saw_the_old_address(scene: Scene) -> None:
    scene.send()
    change = functools.partial(endpoints.edit, scene.owner, scene.endpoint.pk, {"url": ELSEWHERE})

    with meanwhile(change) as edited:
        [before] = claims.claim(1, factories.WORKER)

    assert before.url == scene.endpoint.url
    assert edited.result().url == ELSEWHERE


def test_a_claim_that_comes_during_an_edit_follows_it(scene: Scene) -> None:
    scene.send()

    with meanwhile(lambda: claims.claim(1, factories.WORKER)) as claimed:
        endpoints.edit(scene.owner, scene.endpoint.pk, {"url": ELSEWHERE})

    assert [attempt.url for attempt in claimed.result()] == [ELSEWHERE]


def test_a_claim_that_comes_during_an_emergency_is_not_signed_with_what_leaked(
    scene: Scene,
) -> None:
    scene.send()
    leaked = EndpointSecret.objects.get(endpoint=scene.endpoint).ciphertext

    with meanwhile(lambda: claims.claim(1, factories.WORKER)) as claimed:
        endpoints.rotate_secret(scene.owner, scene.endpoint.pk, overlap_hours=0)

    [attempt] = claimed.result()
    assert len(attempt.secret_ciphertexts) == 1
    assert leaked not in attempt.secret_ciphertexts


def test_edits_claims_and_recordings_never_deadlock(scene: Scene) -> None:
    others = [scene.another_endpoint() for _ in range(3)]
    for n in range(ROUNDS):
        failures = [factories.answer(attempt, 503) for attempt in flying(scene, 4)]
        for endpoint in others:
            scene.send(endpoint)
        edits = [
            functools.partial(endpoints.edit, scene.owner, e.pk, {"description": str(n)})
            for e in (scene.endpoint, *others)
        ]
        moved = functools.partial(
            endpoints.edit, scene.owner, others[n % 3].pk, {"is_default": True}
        )
        runners: list[Callable[[], object]] = [
            *edits,
            moved,
            functools.partial(claims.claim, 2, factories.WORKER),
            functools.partial(record, *failures[:2]),
            functools.partial(record, *failures[2:]),
        ]

        results(race(*runners))

        finish_what_flies()


def finish_what_flies() -> None:
    """End what waits or flies without an answer."""
    now = database_now()
    Delivery.objects.filter(lease_until__isnull=False).update(lease_until=now)
    tasks.sweep_leases()
    Delivery.objects.filter(next_attempt_at__isnull=False).update(
        state="cancelled", next_attempt_at=None, settled_at=now
    )


# --- the default --------------------------------------------------------------------------------


def test_a_dispatch_that_comes_while_the_default_moves_goes_to_the_new_one(scene: Scene) -> None:
    other, command = scene.another_endpoint(), scene.issued()

    with meanwhile(lambda: lifecycle.dispatch(scene.operator, command.pk)) as dispatched:
        endpoints.edit(scene.owner, other.pk, {"is_default": True})

    delivery = dispatched.result().delivery
    assert delivery
    assert delivery.endpoint_id == other.pk


def test_of_defaults_chosen_at_once_one_remains(scene: Scene) -> None:
    candidates = [scene.endpoint, *(scene.another_endpoint() for _ in range(3))]
    for _ in range(ROUNDS):
        choices = [
            functools.partial(endpoints.edit, scene.owner, e.pk, {"is_default": True})
            for e in candidates
        ]

        results(race(*choices))

        assert Endpoint.objects.filter(is_default=True).count() == 1


def test_a_default_archived_while_another_is_chosen_leaves_one(scene: Scene) -> None:
    other = scene.another_endpoint()

    results(
        race(
            lambda: endpoints.archive(scene.owner, scene.endpoint.pk),
            lambda: endpoints.edit(scene.owner, other.pk, {"is_default": True}),
        )
    )

    assert [e.pk for e in Endpoint.objects.filter(is_default=True)] == [other.pk]


# --- disabled once ------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [20, 24])
def test_twenty_failures_recorded_at_once_disable_once_and_are_told_of_once(
    scene: Scene, count: int
) -> None:
    """Of exactly twenty, whoever is last must see the nineteen of the others."""
    watcher = scene.another_endpoint("event", event_types=["endpoint.disabled"])
    failures = [factories.answer(attempt, 503) for attempt in flying(scene, count)]

    shares = [functools.partial(record, *failures[n::8]) for n in range(8)]
    assert sum(closed or 0 for closed in results(race(*shares))) == count

    scene.endpoint.refresh_from_db()
    assert not scene.endpoint.enabled
    [event] = Event.objects.filter(type="endpoint.disabled")
    assert [d.endpoint_id for d in event.deliveries.all()] == [watcher.pk]
    told = event.value["data"]["endpoint"]
    assert told["id"] == str(scene.endpoint.pk)
    assert told["disabledReason"] == "failed_20_times_in_a_row"
    assert Notice.objects.filter(kind="endpoint_disabled").count() == 1


def test_an_owner_who_disables_while_the_rule_does_changes_nothing_twice(scene: Scene) -> None:
    failures = [factories.answer(attempt, 503) for attempt in flying(scene, 20)]

    results(
        race(
            *[functools.partial(record, *failures[n::4]) for n in range(4)],
            lambda: endpoints.disable(scene.owner, scene.endpoint.pk, "by hand"),
        )
    )

    assert Event.objects.filter(type="endpoint.disabled").count() == 1
    assert Notice.objects.filter(kind="endpoint_disabled").count() == 1


def test_archiving_leaves_nothing_waiting_whoever_claims_and_pings_meanwhile(scene: Scene) -> None:
    for _ in range(ROUNDS):
        endpoint = scene.another_endpoint()
        for _ in range(4):
            scene.send(endpoint)
        ping = functools.partial(endpoints.ping, scene.owner, endpoint.pk)
        runners: list[Callable[[], object]] = [
            functools.partial(endpoints.archive, scene.owner, endpoint.pk),
            functools.partial(claims.claim, 2, factories.WORKER),
            ping,
            ping,
        ]

        results(race(*runners), endpoints.Refused)

        assert not endpoint.deliveries.filter(next_attempt_at__isnull=False).exists()
        finish_what_flies()
        assert not endpoint.deliveries.filter(state=Delivery.State.PENDING).exists()


# --- secrets ------------------------------------------------------------------------------------


def test_rotations_at_once_leave_one_current_secret(scene: Scene) -> None:
    rotate = functools.partial(endpoints.rotate_secret, scene.owner, scene.endpoint.pk)

    rotated = results(race(*[rotate] * 3))

    assert len({one.secret for one in rotated if one}) == 3
    assert EndpointSecret.objects.filter(endpoint=scene.endpoint).count() == 4
    assert EndpointSecret.objects.filter(endpoint=scene.endpoint, expires_at=None).count() == 1


# --- a flood of dispatches ----------------------------------------------------------------------


def test_failures_are_recorded_ahead_of_dispatches_that_come_later(scene: Scene) -> None:
    first, second = scene.issued(), scene.issued()
    [attempt] = flying(scene, 1)
    fail = functools.partial(record, factories.answer(attempt, 503))
    dispatch = functools.partial(lifecycle.dispatch, scene.operator, second.pk)

    with ThreadPoolExecutor(2) as pool:
        with transaction.atomic():
            lifecycle.dispatch(scene.operator, first.pk)
            failed = pool.submit(with_own_connection, fail)
            wait_until_waiting(1)
            dispatched = pool.submit(with_own_connection, dispatch)
            wait_until_waiting(2)
        assert failed.result(PATIENCE_S) == 1
        assert dispatched.result(PATIENCE_S).state == "queued"
