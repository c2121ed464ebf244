"""When an endpoint has failed too often, judged as results are recorded."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import timedelta

from django.db.models.functions import Now

from tests import factories
from tests.factories import Scene, delivery_of, fresh, record
from webhooks import endpoints
from webhooks.models import Delivery, Endpoint


def is_enabled(endpoint: Endpoint) -> bool:
    return Endpoint.objects.get(pk=endpoint.pk).enabled


def play(scene: Scene, endpoint: Endpoint, ends: Sequence[int | str]) -> None:
    """One delivery for each end, recorded one after the other; what would be retried is retracted."""
    for end in ends:
        delivery = scene.send(endpoint)
        record(factories.ending(factories.claim(delivery), end))
        Delivery.objects.filter(pk=delivery.pk, state="pending").update(
            state="cancelled", next_attempt_at=None, settled_at=Now()
        )


def test_twenty_attempts_in_a_row_that_failed_disable_an_endpoint(scene: Scene) -> None:
    play(scene, scene.endpoint, [503] * 19)
    assert is_enabled(scene.endpoint)

    play(scene, scene.endpoint, ["timeout"])

    scene.endpoint.refresh_from_db()
    assert not scene.endpoint.enabled
    assert scene.endpoint.disabled_at
    assert "20" in scene.endpoint.disabled_reason


def test_attempts_of_any_failing_kind_count(scene: Scene) -> None:
    kinds: list[int | str] = [500, 429, 400, 301, "timeout", "dns", "connection_refused"]
    kinds += ["connection_reset", "tls", "protocol", "blocked_address"]

    play(scene, scene.endpoint, list(itertools.islice(itertools.cycle(kinds), 20)))

    assert not is_enabled(scene.endpoint)


def test_one_success_starts_the_count_again(scene: Scene) -> None:
    play(scene, scene.endpoint, [503] * 19 + [200] + [503] * 19)
    assert is_enabled(scene.endpoint)

    play(scene, scene.endpoint, [503])

    assert not is_enabled(scene.endpoint)


def test_lost_attempts_neither_count_nor_start_the_count_again(scene: Scene) -> None:
    play(scene, scene.endpoint, ["lost"] * 25)
    assert is_enabled(scene.endpoint)

    play(scene, scene.endpoint, [503] * 10 + ["lost"] * 5 + [503] * 9)
    assert is_enabled(scene.endpoint)
    play(scene, scene.endpoint, [503])

    assert not is_enabled(scene.endpoint)


def ping(scene: Scene, status: int) -> None:
    """A delivery that is a test, answered like this once."""
    event = scene.send().event
    Delivery.objects.filter(event=event).update(
        state="cancelled", next_attempt_at=None, settled_at=Now()
    )
    delivery = Delivery.objects.create(
        organization=scene.organization,
        endpoint=scene.endpoint,
        event=event,
        policy="command",
        is_ping=True,
        next_attempt_at=Now(),
    )
    record(factories.answer(factories.claim(delivery), status))
    Delivery.objects.filter(pk=delivery.pk, state="pending").update(
        state="cancelled", next_attempt_at=None, settled_at=Now()
    )


def test_pings_neither_count_nor_start_the_count_again(scene: Scene) -> None:
    play(scene, scene.endpoint, [503] * 18)

    for status in (503, 400, 503, 200):
        ping(scene, status)
    play(scene, scene.endpoint, [503])
    assert is_enabled(scene.endpoint)
    play(scene, scene.endpoint, [503])

    assert not is_enabled(scene.endpoint)


def test_after_enabling_the_count_starts_from_zero(scene: Scene) -> None:
    play(scene, scene.endpoint, [503] * 20)
    endpoints.enable(scene.owner, scene.endpoint.pk)

    play(scene, scene.endpoint, [503] * 19)
    assert is_enabled(scene.endpoint)
    play(scene, scene.endpoint, [503])

    assert not is_enabled(scene.endpoint)


def test_what_was_on_the_wire_when_it_was_enabled_is_not_counted(scene: Scene) -> None:
    """Attempts may hang while an owner mends the receiver and enables it: none of them is news."""
    flying = factories.claim(scene.send())
    play(scene, scene.endpoint, [503] * 20)
    endpoints.enable(scene.owner, scene.endpoint.pk)
    play(scene, scene.endpoint, [503] * 18)

    record(factories.answer(flying, 503))
    play(scene, scene.endpoint, [503])
    assert is_enabled(scene.endpoint)
    play(scene, scene.endpoint, [503])

    assert not is_enabled(scene.endpoint)


def test_the_first_failure_after_enabling_disables_nothing(scene: Scene) -> None:
    event = scene.another_endpoint("event")
    for endpoint in (scene.endpoint, event):
        for _ in range(2):
            while is_enabled(endpoint):
                factories.fail_with(scene.send(endpoint), [400] * (3 if endpoint == event else 1))
            endpoints.enable(scene.owner, endpoint.pk)
            factories.fail_with(scene.send(endpoint), [400] * (3 if endpoint == event else 1))
            assert is_enabled(endpoint)


def test_the_endpoint_of_another_is_not_judged_along(scene: Scene) -> None:
    other = scene.another_endpoint()

    play(scene, other, [503] * 19)
    play(scene, scene.endpoint, [503] * 19)

    assert is_enabled(other)
    assert is_enabled(scene.endpoint)


def test_the_failure_that_disables_ends_what_waits_its_own_delivery_included(scene: Scene) -> None:
    play(scene, scene.endpoint, [503] * 19)
    waiting, retried, last = scene.dispatched(), scene.dispatched(), scene.dispatched()
    Delivery.objects.filter(command_id=retried.pk).update(
        next_attempt_at=Now() + timedelta(seconds=60)
    )

    record(factories.answer(factories.claim(last), 503))

    for command in (waiting, retried, last):
        assert delivery_of(command).failure_reason == "endpoint_disabled"
        assert fresh(command).failure_reason == "endpoint_disabled"


def test_five_deliveries_in_a_row_that_failed_disable_an_endpoint_for_events(scene: Scene) -> None:
    endpoint = scene.another_endpoint("event")
    for _ in range(4):
        factories.fail_with(scene.send(endpoint), [503, 400, 301])
    assert is_enabled(endpoint)

    delivery = scene.send(endpoint)
    factories.fail_with(delivery, [503, 503])
    assert is_enabled(endpoint)
    factories.fail_with(delivery, [503])

    assert not is_enabled(endpoint)


def test_a_delivery_that_needed_retries_starts_the_count_of_deliveries_again(scene: Scene) -> None:
    endpoint = scene.another_endpoint("event")
    for _ in range(4):
        factories.fail_with(scene.send(endpoint), [503] * 3)
    factories.fail_with(scene.send(endpoint), [503, 503, 200])

    for _ in range(4):
        factories.fail_with(scene.send(endpoint), [503] * 3)
    assert is_enabled(endpoint)
    factories.fail_with(scene.send(endpoint), [503] * 3)

    assert not is_enabled(endpoint)


def test_a_delivery_whose_last_attempt_was_lost_counts_for_nothing(scene: Scene) -> None:
    endpoint = scene.another_endpoint("event")
    for _ in range(5):
        delivery = scene.send(endpoint)
        factories.fail_with(delivery, [503, 503])
        record(factories.lost(factories.claim(delivery)))
        assert delivery_of(delivery).failure_reason == "attempts_exhausted"

    assert is_enabled(endpoint)
    assert endpoints.health_of([endpoint])[endpoint.pk].recent_outcomes == ()


def test_health_counts_down_to_the_disabling(scene: Scene) -> None:
    play(scene, scene.endpoint, [200, 503, 503])

    health = endpoints.health_of([scene.endpoint])[scene.endpoint.pk]

    assert health.recent_outcomes == ("failed", "failed", "delivered")
    assert (health.consecutive_failures, health.failures_until_disabled) == (2, 18)
