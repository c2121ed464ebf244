"""``manage.py simulate``, and that what is simulated is what the recorder does."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from organizations.clock import database_now
from tests import factories
from tests.factories import Scene, delivery_of, record
from tests.statements import counted
from webhooks.engine import claims
from webhooks.models import Delivery, Endpoint
from webhooks.rules.policies import PRESETS
from webhooks.rules.scenarios import Receiver, Reply, Scenario, at_once, down_until
from webhooks.rules.simulation import (
    CLAIM_STATEMENTS,
    JUDGE_STATEMENTS,
    RECORD_STATEMENTS,
    Made,
    Simulated,
    Story,
    simulate,
)
from webhooks.rules.verdicts import ErrorKind


def said(*options: str) -> str:
    output = io.StringIO()
    call_command("simulate", *options, stdout=output)
    return output.getvalue()


def facts(*options: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(said(*options, "--json"))
    return answer


# --- what it says -------------------------------------------------------------------------------


def test_one_delivery_shows_the_schedule_of_the_contract() -> None:
    told = facts("--policy", "telemetry", "--down-for", "200000", "--latency-ms", "0")

    starts = [made["startedMs"] / 1000 for made in told["firstDelivery"]]
    assert starts == [0, *(30 * (2**n - 1) for n in range(1, 13))]
    assert [line["accumulatedS"] for line in told["attemptsByNumber"]] == starts
    assert (told["failed"], told["endedMs"]) == ({"attempts_exhausted": 1}, 122_850_000)


def test_a_page_for_people_says_what_comes_of_it_and_who_feels_what(settings: Settings) -> None:
    settings.ENDPOINT_MAX_IN_FLIGHT = 8
    settings.DELIVERY_WORKERS, settings.SENDER_THREADS = 2, 64

    page = said("--policy", "telemetry", "--deliveries", "1000000", "--down-for", "600")

    assert "1,000,000 deliveries by policy telemetry, all at once, 1 endpoint." in page
    assert "Down for 10 min (503), then 200 after 50 ms." in page
    assert "At most 8 in flight at an endpoint (2 until it answers), 128 in all." in page
    assert "20 failed attempts in a row disable an endpoint." in page
    words = [line.split() for line in page.splitlines()]
    assert ["failed:", "endpoint_disabled", "1,000,000"] in words
    assert ["endpoints", "disabled", "1", "first", "after", "0.2", "s"] in words
    assert ["rows", "written", "1,000,105", "5,000", "1"] in words
    assert not [line for line in page.splitlines() if line != line.rstrip()]


def test_a_span_is_in_the_words_of_the_contract() -> None:
    page = said("--policy", "telemetry", "--down-for", "200000", "--latency-ms", "0")

    assert page.startswith("1 delivery by policy telemetry")
    assert "34 h 7 min 30 s" in page


def test_without_limits_a_million_come_at_once_and_come_back_together() -> None:
    told = facts(
        *("--policy", "event", "--deliveries", "1000000", "--down-for", "10"),
        *("--no-limits", "--keep-enabled"),
    )

    assert (told["delivered"], told["attempts"]) == (1_000_000, 3_000_000)
    assert told["posts"] == {"total": 3_000_000, "peakPerSecond": 1_000_000, "peakAtS": 0}
    assert told["peakInFlight"] == 1_000_000


def test_it_plays_under_the_limits_of_the_settings(settings: Settings) -> None:
    settings.ENDPOINT_MAX_IN_FLIGHT = 3
    settings.DELIVERY_WORKERS, settings.SENDER_THREADS = 1, 5

    assert facts("--deliveries", "100")["peakInFlight"] == 3
    assert facts("--deliveries", "100", "--endpoints", "4")["peakInFlight"] == 5


def test_deliveries_may_come_at_a_rate() -> None:
    told = facts("--deliveries", "600", "--per-second", "10")

    assert told["delivered"] == 600
    assert told["posts"]["peakPerSecond"] == 10
    assert 59_000 < told["endedMs"] < 60_500


def test_a_timeout_takes_the_whole_deadline() -> None:
    told = facts("--policy", "event", "--down-for", "60", "--down-answer", "timeout")

    assert [made["startedMs"] for made in told["firstDelivery"]] == [0, 15_000, 35_000]


@pytest.mark.parametrize(
    "options",
    [
        ["--deliveries", "0"],
        ["--deliveries", "many"],
        ["--policy", "none"],
        ["--down-answer", "150"],
        ["--down-answer", "angry"],
        ["--latency-ms", "-1"],
    ],
)
def test_what_cannot_be_played_is_refused(options: list[str]) -> None:
    with pytest.raises(CommandError):
        said(*options)


# --- simulated and recorded ---------------------------------------------------------------------


def simulated(policy: str, receiver: Receiver, deliveries: int = 1) -> Simulated:
    return simulate(Scenario(PRESETS[policy], at_once(deliveries), receiver, followed=deliveries))


@pytest.mark.django_db
@pytest.mark.parametrize("policy", PRESETS)
@pytest.mark.parametrize(
    "receiver",
    [
        pytest.param(down_until(10**12, Reply(1234, 503), Reply(0)), id="always down"),
        pytest.param(down_until(600_000, Reply(50, 429), Reply(70, 204)), id="ten minutes"),
        pytest.param(
            down_until(1, Reply(20_000, None, ErrorKind.DNS), Reply(5, 404)), id="then 404"
        ),
    ],
)
def test_the_recorder_plans_and_ends_a_delivery_as_simulated(
    scene: Scene, policy: str, receiver: Receiver
) -> None:
    [story] = simulated(policy, receiver).stories
    delivery = scene.send(scene.another_endpoint(policy))
    began = database_now()

    for made, following in zip(story.attempts, [*story.attempts[1:], None], strict=True):
        end(delivery, made, receiver, began)
        waiting = delivery_of(delivery).next_attempt_at
        assert waiting == (following and moment(began, following.due_ms))

    assert fate(delivery) == expected(story)
    assert delivery_of(delivery).settled_at == moment(began, story.ended_ms)


def end(delivery: Delivery, made: Made, receiver: Receiver, began: datetime) -> None:
    """Have the recorder take this attempt as the simulation made it."""
    attempt = factories.claim(delivery)
    assert attempt.number == made.number
    reply = receiver(made.started_ms).within_deadline()
    finished_at = moment(began, made.finished_ms)
    if reply.status is None:
        record(factories.no_answer(attempt, reply.error_kind, finished_at=finished_at))
    else:
        record(factories.answer(attempt, reply.status, finished_at=finished_at))


def moment(began: datetime, at_ms: int) -> datetime:
    return began + timedelta(milliseconds=at_ms)


def fate(delivery: Delivery) -> tuple[str, str, int]:
    ended = delivery_of(delivery)
    return ended.state, ended.failure_reason, ended.attempts


def expected(story: Story) -> tuple[str, str, int]:
    if story.reason is None:
        return "delivered", "", len(story.attempts)
    return "failed", story.reason.value, len(story.attempts)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("policy", "deliveries"), [("command", 7), ("telemetry", 19), ("event", 6)]
)
def test_the_recorder_disables_an_endpoint_as_simulated(
    scene: Scene, policy: str, deliveries: int
) -> None:
    result = simulated(policy, down_until(10**12, Reply(10, 503), Reply(0)), deliveries)
    endpoint = scene.another_endpoint(policy)
    sent = [scene.send(endpoint) for _ in range(deliveries)]

    wave = sent
    while Endpoint.objects.get(pk=endpoint.pk).enabled and wave:
        fail(wave)
        wave = [one for one in sent if delivery_of(one).state == "pending"]

    assert bool(result.disabled_ms) is not Endpoint.objects.get(pk=endpoint.pk).enabled
    stories = [expected(story) for story in result.stories for _ in range(story.count)]
    assert sorted(map(fate, sent)) == sorted(stories)


def fail(deliveries: Sequence[Delivery]) -> None:
    """One attempt of each, all recorded together."""
    record(*[factories.answer(factories.claim(one), 503) for one in deliveries])


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("status", "statements"),
    [(200, RECORD_STATEMENTS), (503, RECORD_STATEMENTS + JUDGE_STATEMENTS)],
)
def test_the_engine_asks_the_database_as_often_as_simulated(
    scene: Scene, status: int, statements: int
) -> None:
    for _ in range(2):
        scene.send()

    with counted() as claiming:
        taken = claims.claim(10, factories.WORKER)
    outcomes = [factories.answer(attempt, status) for attempt in taken]
    with counted() as recording:
        record(*outcomes)

    assert len(taken) == 2
    assert len(own(claiming)) == CLAIM_STATEMENTS
    assert len(own(recording)) == statements


def own(statements: list[object]) -> list[object]:
    """Without the savepoints, which stand for a transaction inside that of a test."""
    return [one for one in statements if "SAVEPOINT" not in str(one)]
