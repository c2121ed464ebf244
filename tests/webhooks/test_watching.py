"""Which endpoints somebody should look at."""

from __future__ import annotations

from datetime import timedelta

import pytest

from organizations.clock import database_now
from tests.factories import Scene, answer, claim, delivery_of, fail_with, new_scene, record
from webhooks import endpoints, watching
from webhooks.watching import Watched

pytestmark = pytest.mark.django_db


def watched(scene: Scene, later: timedelta = timedelta()) -> Watched:
    return watching.watch(scene.organization, database_now() + later)


def test_an_endpoint_that_answers_is_not_looked_at(scene: Scene) -> None:
    scene.delivered()
    assert watched(scene) == Watched([], [], [])


def test_two_failures_are_what_retries_are_for_and_three_are_not(scene: Scene) -> None:
    command = scene.dispatched()
    fail_with(command, [503, 503])
    assert not watched(scene).failing
    fail_with(command, [503])
    [failing] = watched(scene).failing
    assert failing.endpoint == scene.endpoint
    assert failing.health.failures_until_disabled == 17


def test_a_success_ends_the_streak(scene: Scene) -> None:
    fail_with(scene.dispatched(), [503, 503, 503])
    scene.delivered()
    assert not watched(scene).failing


def test_a_ping_that_was_answered_does_not(scene: Scene) -> None:
    fail_with(scene.dispatched(), [503, 503, 503])
    ping = endpoints.ping(scene.owner, scene.endpoint.pk)
    record(answer(claim(ping), 200))
    assert watched(scene).failing


def test_the_nearest_to_being_disabled_comes_first(scene: Scene) -> None:
    other = scene.another_endpoint()
    fail_with(scene.dispatched(), [503] * 3)
    for _ in range(2):
        fail_with(scene.send(other), [503] * 3)
    assert [one.endpoint for one in watched(scene).failing] == [other, scene.endpoint]


def test_disabled_endpoints_the_last_first_but_none_that_is_archived(scene: Scene) -> None:
    first, second, archived = (scene.another_endpoint() for _ in range(3))
    for endpoint in (archived, first, second):
        endpoints.disable(scene.owner, endpoint.pk, "Moving")
    endpoints.archive(scene.owner, archived.pk)
    found = watched(scene)
    assert [one.endpoint for one in found.disabled] == [second, first]
    assert not found.failing


def test_work_that_is_due_for_longer_than_five_seconds_is_late(scene: Scene) -> None:
    delivery = delivery_of(scene.dispatched())
    assert not watched(scene).behind
    [behind] = watched(scene, timedelta(seconds=6)).behind
    assert behind.endpoint == scene.endpoint
    assert behind.due_at == delivery.next_attempt_at
    assert behind.in_flight == 0


def test_late_work_may_wait_behind_what_is_on_the_wire(scene: Scene) -> None:
    scene.on_the_wire()
    scene.dispatched()
    [behind] = watched(scene, timedelta(seconds=6)).behind
    assert behind.in_flight == 1


def test_a_retry_that_is_to_come_is_not_late(scene: Scene) -> None:
    fail_with(scene.dispatched(), [503])
    assert not watched(scene).behind


def test_nothing_of_another_organization(scene: Scene) -> None:
    other = new_scene()
    fail_with(other.dispatched(), [503] * 3)
    other.dispatched()
    endpoints.disable(other.owner, other.another_endpoint().pk, "Moving")
    assert watched(scene, timedelta(minutes=1)) == Watched([], [], [])
