"""Recording: what a result does to its attempt, its delivery and its endpoint."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from commands import settling
from organizations.clock import database_now
from tests import factories
from tests.factories import Scene, attempts, delivery_of, fresh, record
from webhooks import endpoints
from webhooks.engine.claims import Claimed
from webhooks.models import Attempt, Delivery, Endpoint

CONTRACT: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "data" / "vectors.json").read_text()
)


@pytest.mark.parametrize("policy", CONTRACT["policies"])
def test_each_attempt_is_due_to_the_microsecond_after_the_end_of_the_one_before(
    scene: Scene, policy: str
) -> None:
    delivery = scene.send(scene.another_endpoint(policy))
    first, *waits = CONTRACT["policies"][policy]["waits_s"]
    assert first == 0

    for number, wait in enumerate(waits, start=1):
        attempt = factories.claim(delivery)
        finished_at = database_now() + timedelta(microseconds=number)
        record(factories.answer(attempt, 503, finished_at=finished_at))

        due = finished_at + timedelta(seconds=wait)
        waiting = delivery_of(delivery)
        assert waiting.state == Delivery.State.PENDING
        assert (waiting.next_attempt_at, waiting.lease_until) == (due, None)
        assert attempts(delivery)[-1].next_attempt_at == due


@pytest.mark.parametrize("policy", CONTRACT["policies"])
def test_after_the_last_attempt_the_delivery_is_exhausted(scene: Scene, policy: str) -> None:
    delivery = scene.send(scene.another_endpoint(policy))
    planned = CONTRACT["policies"][policy]["attempts"]

    factories.fail_with(delivery, [503] * planned)

    ended, made = delivery_of(delivery), attempts(delivery)
    assert (ended.state, ended.failure_reason) == ("failed", "attempts_exhausted")
    assert (ended.attempts, ended.next_attempt_at, ended.lease_until) == (planned, None, None)
    assert [attempt.number for attempt in made] == list(range(1, planned + 1))
    assert made[-1].next_attempt_at is None
    assert ended.settled_at == made[-1].finished_at


def test_everything_known_of_an_attempt_is_kept(scene: Scene) -> None:
    attempt = factories.claim(scene.send())
    outcome = factories.answer(
        attempt,
        503,
        duration_ms=1234,
        response_excerpt=b"busy \xff",
        excerpt_truncated=True,
        retry_after="120",
        location="https://elsewhere.example/",
        error="It said so.",
    )

    assert record(outcome) == 1

    row = Attempt.objects.get()
    assert (row.verdict, row.status_code, row.duration_ms) == ("retry", 503, 1234)
    assert (row.started_at, row.finished_at) == (outcome.started_at, outcome.finished_at)
    assert bytes(row.response_excerpt) == b"busy \xff"
    assert row.excerpt_text == "busy \ufffd"
    assert row.excerpt_truncated
    assert (row.retry_after, row.location) == ("120", "https://elsewhere.example/")
    assert (row.error, row.error_kind) == ("It said so.", "")


def test_a_retry_after_header_moves_nothing(scene: Scene) -> None:
    attempt = factories.claim(scene.send())
    now = database_now()

    record(factories.answer(attempt, 429, finished_at=now, retry_after="3600"))

    assert delivery_of_attempt(attempt).next_attempt_at == now + timedelta(seconds=5)


def delivery_of_attempt(attempt: Claimed) -> Delivery:
    return Delivery.objects.get(pk=attempt.delivery_id)


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_a_2xx_delivers_at_the_first_attempt_or_any(scene: Scene, status: int) -> None:
    for before in ([], [503], [503] * 4):
        delivery = scene.send()
        factories.fail_with(delivery, [*before, status])

        ended = delivery_of(delivery)
        assert ended.state == Delivery.State.DELIVERED
        assert (ended.next_attempt_at, ended.lease_until) == (None, None)
        assert ended.settled_at == attempts(delivery)[-1].finished_at


@pytest.mark.parametrize("status", [301, 400, 404, 410])
def test_a_refusal_ends_a_command_at_once_and_an_event_never(scene: Scene, status: int) -> None:
    command, event = scene.send(), scene.send(scene.another_endpoint("event"))

    factories.fail_with(command, [status])
    factories.fail_with(event, [status])

    assert (delivery_of(command).state, delivery_of(command).failure_reason) == (
        "failed",
        "refused",
    )
    assert delivery_of(event).state == "pending"
    factories.fail_with(event, [status] * 2)
    assert delivery_of(event).failure_reason == "attempts_exhausted"


def test_a_delivery_keeps_the_policy_that_it_started_with(scene: Scene) -> None:
    delivery = scene.send()
    Endpoint.objects.filter(pk=scene.endpoint.pk).update(policy="event")

    factories.fail_with(delivery, [503] * 4)

    assert delivery_of(delivery).state == "pending"
    factories.fail_with(delivery, [404])
    assert delivery_of(delivery).failure_reason == "refused"


# --- lost attempts ------------------------------------------------------------------------------


def test_a_lost_attempt_is_one_of_those_planned_and_the_next_follows(scene: Scene) -> None:
    delivery = scene.send()

    for _ in range(4):
        record(factories.lost(factories.claim(delivery)))
    assert delivery_of(delivery).state == "pending"
    record(factories.lost(factories.claim(delivery)))

    assert delivery_of(delivery).failure_reason == "attempts_exhausted"
    assert [a.verdict for a in attempts(delivery)] == ["lost"] * 5


# --- the fence ----------------------------------------------------------------------------------


def test_an_attempt_that_was_closed_takes_nothing_more(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    command, attempt = scene.on_the_wire()
    record(factories.lost(attempt))

    assert record(factories.answer(attempt, 200)) == 0

    [row] = attempts(command)
    assert (row.verdict, row.status_code) == ("lost", None)
    assert fresh(command).state == "queued"
    assert delivery_of(command).next_attempt_at
    assert "came after their lease" in caplog.text


def test_a_late_result_does_not_touch_the_attempt_that_followed(scene: Scene) -> None:
    command, first = scene.on_the_wire()
    record(factories.lost(first))
    second = factories.claim(command)

    assert record(factories.answer(first, 400)) == 0

    delivery = delivery_of(command)
    assert (delivery.state, delivery.attempts) == ("pending", 2)
    assert delivery.lease_until
    assert record(factories.answer(second, 200)) == 1
    assert fresh(command).state == "delivered"


def test_in_a_batch_the_late_result_alone_is_dropped(scene: Scene) -> None:
    attempts_made = [factories.claim(scene.send()) for _ in range(3)]
    record(factories.lost(attempts_made[1]))

    assert record(*(factories.answer(attempt, 200) for attempt in attempts_made)) == 2

    states = [delivery_of_attempt(attempt).state for attempt in attempts_made]
    assert states == ["delivered", "pending", "delivered"]


def test_a_batch_commits_whole_or_not_at_all(scene: Scene) -> None:
    command, attempt = scene.on_the_wire()

    with (
        patch.object(settling, "_deliver", side_effect=RuntimeError),
        pytest.raises(RuntimeError),
    ):
        record(factories.answer(attempt, 200))

    assert attempts(command)[0].finished_at is None
    assert delivery_of(command).lease_until
    assert record(factories.answer(attempt, 200)) == 1
    assert fresh(command).state == "delivered"


# --- an endpoint was disabled meanwhile ---------------------------------------------------------


def test_a_2xx_delivers_though_its_endpoint_was_disabled_meanwhile(scene: Scene) -> None:
    command, attempt = scene.on_the_wire()
    endpoints.disable(scene.owner, scene.endpoint.pk, "")
    assert delivery_of(command).state == "pending"

    record(factories.answer(attempt, 200))

    assert delivery_of(command).state == "delivered"
    assert fresh(command).state == "delivered"
    scene.endpoint.refresh_from_db()
    assert not scene.endpoint.enabled


@pytest.mark.parametrize("end", [503, 429, "timeout", "lost"])
def test_anything_that_asks_for_a_retry_at_a_disabled_endpoint_ends_the_delivery(
    scene: Scene, end: int | str
) -> None:
    command, attempt = scene.on_the_wire()
    endpoints.disable(scene.owner, scene.endpoint.pk, "")

    record(factories.ending(attempt, end))

    delivery, command = delivery_of(command), fresh(command)
    assert (delivery.state, delivery.failure_reason) == ("failed", "endpoint_disabled")
    assert (command.state, command.failure_reason) == ("failed", "endpoint_disabled")
    assert attempts(command)[0].next_attempt_at is None


def test_a_refusal_at_a_disabled_endpoint_is_still_a_refusal(scene: Scene) -> None:
    command, attempt = scene.on_the_wire()
    endpoints.disable(scene.owner, scene.endpoint.pk, "")

    record(factories.answer(attempt, 400))

    assert fresh(command).failure_reason == "refused"
