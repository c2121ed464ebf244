"""Workers at the same time: claims, recordings and the disabling of an endpoint, with real connections."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from unittest.mock import patch

import pytest
from django.db import transaction
from pytest_django import Settings

from commands import lifecycle
from commands.errors import DispatchRefused
from organizations.clock import database_now
from tests import factories
from tests.factories import Scene, new_scene, record
from tests.racing import meanwhile, race, results
from webhooks import endpoints
from webhooks.engine import claims, recorder, tasks
from webhooks.engine.claims import Claimed
from webhooks.models import Attempt, Delivery, Endpoint

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 12
CAP = 8


@pytest.fixture
def scene() -> Scene:
    return new_scene()


@pytest.fixture(autouse=True)
def _endpoints_need_not_prove_themselves(settings: Settings) -> None:
    """Here an endpoint has its full room from the start."""
    settings.ENDPOINT_UNPROVEN_IN_FLIGHT = 10_000


def room_for(endpoint: Endpoint, attempts: int) -> None:
    Endpoint.objects.filter(pk=endpoint.pk).update(max_in_flight=attempts)


def sent(scene: Scene, count: int, targets: Sequence[Endpoint] = ()) -> list[Claimed]:
    """Attempts under way, in turn at each of the endpoints."""
    for n in range(count):
        scene.send(targets[n % len(targets)] if targets else None)
    attempts = claims.claim(count + 1, factories.WORKER)
    assert len(attempts) == count
    return attempts


def in_flight() -> Counter[object]:
    leased = Delivery.objects.filter(lease_until__isnull=False)
    return Counter(leased.values_list("endpoint_id", flat=True))


# --- claims -------------------------------------------------------------------------------------


def test_every_due_delivery_is_claimed_once_and_no_endpoint_is_overrun(scene: Scene) -> None:
    targets = [scene.endpoint, *(scene.another_endpoint() for _ in range(5))]
    due = {scene.send(targets[n % 6]).pk for n in range(300)}
    fullest: list[int] = []

    def worker() -> list[Claimed]:
        made: list[Claimed] = []
        while batch := claims.claim(7, factories.WORKER):
            fullest.append(max(in_flight().values()))
            record(*(factories.answer(one, 200) for one in batch))
            made += batch
        return made

    claimed = [one.delivery_id for made in results(race(*[worker] * 8)) for one in made or []]

    # A worker that finds every endpoint full goes home; the rest is taken here.
    claimed += [one.delivery_id for one in worker()]
    assert Counter(claimed) == Counter(due)
    assert Attempt.objects.count() == 300
    assert max(fullest) <= CAP


def test_two_workers_never_hold_the_same_delivery(scene: Scene) -> None:
    room_for(scene.endpoint, 100)
    for _ in range(ROUNDS):
        due = {scene.send().pk for _ in range(4)}

        taken = results(race(*[functools.partial(claims.claim, 3, factories.WORKER)] * 4))

        assert Counter(one.delivery_id for made in taken for one in made or []) == Counter(due)
        record(*(factories.answer(one, 200) for made in taken for one in made or []))


def test_what_is_not_committed_yet_is_claimed_by_nobody_and_then_by_somebody(scene: Scene) -> None:
    """However long the transaction that makes a delivery takes: nobody is told of a row too early."""
    take = functools.partial(claims.claim, 10, factories.WORKER)
    with transaction.atomic():
        delivery = scene.send()
        assert results(race(take, take)) == [[], []]

    [made] = [batch for batch in results(race(take, take)) if batch]
    assert [one.delivery_id for one in made] == [delivery.pk]


# --- recording ----------------------------------------------------------------------------------


def test_of_two_recordings_of_an_attempt_one_counts(scene: Scene) -> None:
    for _ in range(ROUNDS):
        [attempt] = sent(scene, 1)
        good, lost = factories.answer(attempt, 200), factories.lost(attempt)

        closed = results(race(lambda o=good: record(o), lambda o=lost: record(o)))  # type: ignore[misc]

        assert sorted(count or 0 for count in closed) == [0, 1]
        [row] = Attempt.objects.filter(pk=attempt.attempt_id)
        winner = good if closed[0] else lost
        assert row.verdict == winner.verdict
        assert row.finished_at == winner.finished_at
        expected = Delivery.State.DELIVERED if closed[0] else Delivery.State.PENDING
        assert Delivery.objects.get(pk=attempt.delivery_id).state == expected


def test_the_rule_fires_once_however_many_record_at_once(scene: Scene) -> None:
    room_for(scene.endpoint, 100)
    failures = [factories.answer(attempt, 503) for attempt in sent(scene, 24)]
    waiting = [scene.dispatched() for _ in range(5)]

    with patch.object(endpoints, "disable_locked", wraps=endpoints.disable_locked) as disable:
        shares = [functools.partial(record, *failures[n::8]) for n in range(8)]
        assert sum(count or 0 for count in results(race(*shares))) == 24

    assert disable.call_count == 1
    scene.endpoint.refresh_from_db()
    assert not scene.endpoint.enabled
    assert not Delivery.objects.filter(state=Delivery.State.PENDING).exists()
    assert {factories.fresh(command).state for command in waiting} == {"failed"}


def test_nineteen_failures_at_once_disable_nothing(scene: Scene) -> None:
    room_for(scene.endpoint, 100)
    failures = [factories.answer(attempt, 503) for attempt in sent(scene, 19)]

    results(race(*[functools.partial(record, *failures[n::8]) for n in range(8)]))

    scene.endpoint.refresh_from_db()
    assert scene.endpoint.enabled


# --- an endpoint is disabled meanwhile ----------------------------------------------------------


def nothing_waits_at_a_disabled_endpoint() -> bool:
    return not Delivery.objects.filter(
        endpoint__enabled=False, next_attempt_at__isnull=False
    ).exists()


def test_disabling_leaves_nothing_waiting_whoever_claims_and_records_meanwhile(
    scene: Scene,
) -> None:
    room_for(scene.endpoint, 100)
    for _ in range(ROUNDS):
        flying = sent(scene, 4)
        due = [scene.dispatched() for _ in range(4)]
        failures = [factories.answer(attempt, 503) for attempt in flying]
        runners: list[Callable[[], object]] = [
            lambda: endpoints.disable(scene.owner, scene.endpoint.pk, "broken"),
            functools.partial(claims.claim, 2, factories.WORKER),
            functools.partial(claims.claim, 2, factories.WORKER),
            functools.partial(record, *failures[:2]),
            functools.partial(record, *failures[2:]),
            tasks.sweep_leases,
        ]

        results(race(*runners))

        assert nothing_waits_at_a_disabled_endpoint()
        states = {factories.fresh(command).state for command in due}
        assert states <= {"failed", "queued"}
        finish_what_flies()
        assert not Delivery.objects.filter(state=Delivery.State.PENDING).exists()
        assert {factories.fresh(command).state for command in due} == {"failed"}
        endpoints.enable(scene.owner, scene.endpoint.pk)


def test_a_claim_commits_while_its_endpoint_is_being_disabled(scene: Scene) -> None:
    """The claim holds the delivery and refers to the endpoint; the disabling holds the endpoint and
    waits for the delivery. Each must still get to its end.
    """
    delivery = scene.send()

    with meanwhile(lambda: endpoints.disable(scene.owner, scene.endpoint.pk, "")) as disabled:
        assert claims.claim(1, factories.WORKER)

    assert not disabled.result().enabled
    delivery.refresh_from_db()
    assert delivery.lease_until
    assert nothing_waits_at_a_disabled_endpoint()


def test_a_failure_recorded_while_its_endpoint_is_disabled_ends_the_delivery(scene: Scene) -> None:
    [attempt] = sent(scene, 1)

    with meanwhile(lambda: record(factories.answer(attempt, 503))) as recorded:
        endpoints.disable(scene.owner, scene.endpoint.pk, "")

    assert recorded.result() == 1
    delivery = Delivery.objects.get(pk=attempt.delivery_id)
    assert (delivery.state, delivery.failure_reason) == ("failed", "endpoint_disabled")


def test_a_dispatch_that_comes_while_its_endpoint_is_disabled_is_refused(scene: Scene) -> None:
    command = scene.issued()

    with meanwhile(lambda: lifecycle.dispatch(scene.operator, command.pk)) as dispatched:
        endpoints.disable(scene.owner, scene.endpoint.pk, "")

    assert isinstance(dispatched.exception(), DispatchRefused)
    assert factories.fresh(command).dispatch_refusal == "endpoint_disabled"


def finish_what_flies() -> None:
    """End every attempt in flight without an answer, as the sweep would after its lease."""
    Delivery.objects.filter(lease_until__isnull=False).update(lease_until=database_now())
    tasks.sweep_leases()


def test_dispatches_that_race_a_disabling_are_before_it_or_refused(scene: Scene) -> None:
    for _ in range(ROUNDS):
        commands = [scene.issued() for _ in range(4)]
        dispatch = [functools.partial(lifecycle.dispatch, scene.operator, c.pk) for c in commands]
        disable = functools.partial(endpoints.disable, scene.owner, scene.endpoint.pk, "broken")

        results(race(*dispatch, disable), DispatchRefused)

        assert {factories.fresh(c).state for c in commands} <= {"failed", "logged"}
        assert nothing_waits_at_a_disabled_endpoint()
        endpoints.enable(scene.owner, scene.endpoint.pk)


def test_recordings_of_several_endpoints_never_deadlock(scene: Scene) -> None:
    targets = [scene.endpoint, *(scene.another_endpoint() for _ in range(3))]
    for endpoint in targets:
        room_for(endpoint, 100)
    for n in range(ROUNDS):
        flying = sent(scene, 16, targets)
        outcomes = [
            factories.answer(attempt, 503 if (i + n) % 3 else 200)
            for i, attempt in enumerate(flying)
        ]
        shares = [outcomes[k::4][:: 1 if k % 2 else -1] for k in range(4)]

        closed = results(race(*[functools.partial(recorder.record, share) for share in shares]))

        assert sum(count or 0 for count in closed) == 16
        Delivery.objects.filter(next_attempt_at__isnull=False).update(
            state="cancelled", next_attempt_at=None, settled_at=database_now()
        )
