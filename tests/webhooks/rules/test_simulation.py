"""The engine's decisions against a virtual clock: the contract's schedules, to the millisecond."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhooks.rules.policies import COMMAND, EVENT, PRESETS, TELEMETRY, Policy
from webhooks.rules.scenarios import (
    Batches,
    Limits,
    Receiver,
    Reply,
    Scenario,
    at_once,
    at_rate,
    down_until,
)
from webhooks.rules.simulation import Made, Simulated, Story, simulate
from webhooks.rules.verdicts import ErrorKind, FailureReason, Verdict

A_MILLION = 1_000_000
TEN_MINUTES_MS = 600_000
EACH = pytest.mark.parametrize("policy", PRESETS.values(), ids=PRESETS)


def always(reply: Reply) -> Receiver:
    return lambda _: reply


def play(policy: Policy, receiver: Receiver, deliveries: int = 1, **terms: Any) -> Simulated:
    terms = {"arrivals": at_once(deliveries), "followed": deliveries, **terms}
    return simulate(Scenario(policy=policy, receiver=receiver, **terms))


def only_story(result: Simulated) -> Story:
    [story] = result.stories
    return story


def starts_s(story: Story) -> list[float]:
    return [made.started_ms / 1000 for made in story.attempts]


# --- schedules ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "accumulated_s"),
    [
        (COMMAND, [0, 5, 30, 155, 780]),
        (
            TELEMETRY,
            [0, 30, 90, 210, 450, 930, 1890, 3810, 7650, 15330, 30690, 61410, 122850],
        ),
        (EVENT, [0, 5, 15]),
    ],
    ids=lambda value: value.name if isinstance(value, Policy) else "",
)
def test_attempts_that_take_no_time_start_at_the_accumulated_waits(
    policy: Policy, accumulated_s: list[int]
) -> None:
    result = play(policy, always(Reply(0, 503)))

    story = only_story(result)
    assert starts_s(story) == accumulated_s
    assert (story.ended_ms, story.reason) == (
        accumulated_s[-1] * 1000,
        FailureReason.ATTEMPTS_EXHAUSTED,
    )
    assert [made.number for made in story.attempts] == list(range(1, policy.attempts + 1))


@EACH
def test_a_wait_counts_from_the_end_of_the_attempt_before(policy: Policy) -> None:
    story = only_story(play(policy, always(Reply(4321, 503))))

    for before, after in itertools.pairwise(story.attempts):
        assert before.finished_ms - before.started_ms == 4321
        wait_s = policy.wait_after(before.number)
        assert wait_s is not None
        assert after.started_ms == after.due_ms == before.finished_ms + wait_s * 1000


@pytest.mark.parametrize(
    ("latency_ms", "starts"), [(0, [0, 5, 15]), (10_000, [0, 15, 35])], ids=["earliest", "latest"]
)
def test_an_event_s_attempts_start_in_the_windows_that_are_promised(
    latency_ms: int, starts: list[float]
) -> None:
    story = only_story(play(EVENT, always(Reply(latency_ms, None, ErrorKind.TIMEOUT))))

    assert starts_s(story) == starts


def test_an_answer_after_the_deadline_is_a_timeout_at_the_deadline() -> None:
    story = only_story(play(EVENT, always(Reply(60_000, 200))))

    assert story.reason is FailureReason.ATTEMPTS_EXHAUSTED
    assert story.attempts[0] == Made(1, 0, 0, 10_000, Verdict.RETRY)


@EACH
@pytest.mark.parametrize("status", [301, 404])
def test_a_refusal_ends_a_delivery_where_the_policy_stops_on_it(
    policy: Policy, status: int
) -> None:
    story = only_story(play(policy, always(Reply(10, status))))

    stopped = (1, FailureReason.REFUSED)
    exhausted = (policy.attempts, FailureReason.ATTEMPTS_EXHAUSTED)
    assert (len(story.attempts), story.reason) == (
        stopped if policy.stops_on_refusal else exhausted
    )


# --- an endpoint that is down for ten minutes ---------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "attempts", "delivered_s"),
    [(COMMAND, 5, 780), (TELEMETRY, 6, 930), (EVENT, 3, None)],
    ids=lambda value: value.name if isinstance(value, Policy) else "",
)
def test_after_ten_minutes_down_the_next_planned_attempt_delivers(
    policy: Policy, attempts: int, delivered_s: int | None
) -> None:
    receiver = down_until(TEN_MINUTES_MS, Reply(0, None, ErrorKind.CONNECTION_REFUSED), Reply(0))

    story = only_story(play(policy, receiver))

    assert len(story.attempts) == attempts
    assert starts_s(story) == list(policy.accumulated_s[:attempts])
    if delivered_s is None:
        assert story.reason is FailureReason.ATTEMPTS_EXHAUSTED
    else:
        assert (story.reason, story.ended_ms) == (None, delivered_s * 1000)


def test_a_backlog_is_worked_off_when_the_endpoint_is_back_and_nothing_starts_early() -> None:
    receiver = down_until(TEN_MINUTES_MS, Reply(50, 503), Reply(50))
    limits = Limits(per_endpoint=8, unproven=2, total=128)

    result = play(TELEMETRY, receiver, 5000, limits=limits, disables=False)

    assert result.delivered == 5000
    assert result.peak_in_flight == 8
    assert max(result.posts.values()) <= 8 * 20
    for story in result.stories:
        assert all(made.started_ms >= made.due_ms for made in story.attempts)
        assert story.attempts[-1].started_ms >= TEN_MINUTES_MS
        assert [made.verdict for made in story.attempts[:-1]] == ["retry"] * (
            len(story.attempts) - 1
        )


# --- the disable rule ---------------------------------------------------------------------------


def test_twenty_failed_attempts_disable_the_endpoint_and_end_what_waits() -> None:
    one_at_a_time = Limits(per_endpoint=1)

    result = play(TELEMETRY, always(Reply(100, 503)), 50, limits=one_at_a_time, followed=50)

    assert result.disabled_ms == [2000]
    assert result.attempts == 20
    assert result.failed == {FailureReason.ENDPOINT_DISABLED: 50}
    assert {story.ended_ms for story in result.stories} == {2000}


def test_nineteen_failures_and_a_success_disable_nothing() -> None:
    one_at_a_time = Limits(per_endpoint=1)
    receiver = down_until(1900, Reply(100, 503), Reply(100))

    result = play(TELEMETRY, receiver, 50, limits=one_at_a_time)

    assert (result.disabled_ms, result.delivered) == ([], 50)


def test_five_deliveries_that_failed_in_a_row_disable_an_endpoint_for_events() -> None:
    arrivals = list(at_rate(10, per_second=1))

    result = play(EVENT, always(Reply(0, 503)), arrivals=arrivals, followed=0)

    # One delivery comes each second from 0 and fails after 15: the fifth of them at 19. By then the
    # others have come; what they wait for does not happen any more.
    last_came_ms = arrivals[4].at_ms
    assert result.disabled_ms == [last_came_ms + 15_000]
    assert result.failed == {
        FailureReason.ATTEMPTS_EXHAUSTED: 5,
        FailureReason.ENDPOINT_DISABLED: 5,
    }


def test_an_attempt_on_the_wire_still_delivers_when_its_endpoint_was_disabled_meanwhile() -> None:
    # Whoever starts in the first tenth of a second fails soon; the one after it is slow and succeeds.
    receiver = down_until(100, Reply(200, 503), Reply(5000))
    arrivals = [*at_once(20), *at_rate(1, per_second=1)]
    arrivals[1] = type(arrivals[1])(150, 1)

    result = play(COMMAND, receiver, arrivals=arrivals, followed=0)

    assert result.disabled_ms == [200]
    assert (result.delivered, result.failed.total()) == (1, 20)
    assert result.ended_ms == 5150


def test_what_would_come_after_an_endpoint_was_disabled_is_not_made() -> None:
    arrivals = list(at_rate(100, per_second=10))

    result = play(COMMAND, always(Reply(0, 404)), arrivals=arrivals, followed=0)

    assert (result.failed, result.skipped) == ({FailureReason.REFUSED: 20}, 80)


# --- a million ----------------------------------------------------------------------------------


def test_a_million_that_may_all_start_at_once_fail_in_one_second_and_come_back_on_time() -> None:
    result = play(TELEMETRY, always(Reply(0, 503)), A_MILLION, disables=False, followed=1)

    assert result.attempts == 13 * A_MILLION
    assert result.posts == dict.fromkeys(TELEMETRY.accumulated_s, A_MILLION)
    assert result.failed == {FailureReason.ATTEMPTS_EXHAUSTED: A_MILLION}
    assert result.ended_ms == 122_850_000


def test_the_rate_of_a_million_is_bounded_by_what_may_be_in_flight() -> None:
    result = play(
        TELEMETRY,
        always(Reply(1000, 503)),
        A_MILLION,
        limits=Limits(per_endpoint=2500, total=10_000),
        endpoints=4,
        disables=False,
        followed=10,
    )

    assert result.attempts == 13 * A_MILLION
    assert result.peak_in_flight == 10_000
    assert max(result.posts.values()) == 10_000
    assert result.posts.total() == result.attempts
    for story in result.stories:
        assert all(made.started_ms >= made.due_ms for made in story.attempts)


def test_a_million_at_a_failing_endpoint_cost_it_a_few_requests_with_the_rule() -> None:
    limits = Limits(per_endpoint=8, unproven=2, total=128)

    result = play(TELEMETRY, always(Reply(50, 503)), A_MILLION, limits=limits, followed=0)

    assert result.attempts == 2 + 8 + 8 + 8
    assert result.disabled_ms == [200]
    assert result.failed == {FailureReason.ENDPOINT_DISABLED: A_MILLION}
    # What waits ends in steps: 500 with the disabling, 5,000 in each sweep that follows.
    assert max(result.rows.values()) == 5000
    assert result.ended_ms == 200_200


# --- limits, counts and cohorts -----------------------------------------------------------------


def test_an_endpoint_that_gives_no_answer_gets_few_attempts_at_a_time() -> None:
    limits = Limits(per_endpoint=8, unproven=2)
    silent = Reply(10_000, None, ErrorKind.TIMEOUT)

    result = play(COMMAND, always(silent), 100, limits=limits)

    assert result.peak_in_flight == 2


def test_endpoints_share_the_room_evenly() -> None:
    result = play(
        COMMAND,
        always(Reply(1000)),
        3000,
        endpoints=3,
        limits=Limits(per_endpoint=8, total=10),
        followed=1000,
    )

    assert result.peak_in_flight == 10
    assert result.delivered == 3000
    # A third of the room is the first endpoint's: it needs no longer than the others.
    of_the_first = max(story.ended_ms for story in result.stories)
    assert of_the_first >= result.ended_ms * 0.95


def test_claims_and_recordings_are_counted_by_their_batches() -> None:
    result = play(COMMAND, always(Reply(1000)), 1000, batches=Batches(claim=64, record=100))

    # 16 claims of at most 64; ten recordings of 100, then one claim that finds nothing.
    assert result.statements == {0: 16 * 2, 1: 10 * 3 + 2}
    assert result.rows == {0: 2000, 1: 2000}


def test_arrivals_at_a_rate_add_up() -> None:
    arrivals = list(at_rate(1005, per_second=7))

    assert sum(arrival.count for arrival in arrivals) == 1005
    first_minute = sum(arrival.count for arrival in arrivals if arrival.at_ms < 60_000)
    assert first_minute == 7 * 60


@given(
    policy=st.sampled_from(list(PRESETS.values())),
    deliveries=st.integers(1, 60),
    endpoints=st.integers(1, 3),
    per_endpoint=st.integers(1, 9),
    total=st.integers(1, 20),
    back_ms=st.integers(0, 1_000_000),
    latency_ms=st.integers(1, 12_000),
    disables=st.booleans(),
)
def test_following_each_delivery_or_none_gives_the_same_figures(
    policy: Policy,
    deliveries: int,
    endpoints: int,
    per_endpoint: int,
    total: int,
    back_ms: int,
    latency_ms: int,
    disables: bool,
) -> None:
    def figures(followed: int) -> tuple[Any, ...]:
        result = play(
            policy,
            down_until(back_ms, Reply(latency_ms, 503), Reply(20)),
            deliveries,
            endpoints=endpoints,
            limits=Limits(per_endpoint, 2, total),
            disables=disables,
            followed=followed,
        )
        assert result.delivered + result.failed.total() + result.skipped == deliveries
        assert result.peak_in_flight <= min(total, per_endpoint * endpoints)
        assert result.attempts <= deliveries * policy.attempts
        counted: tuple[Counter[Any], ...] = (result.posts, result.statements, result.rows)
        return result.delivered, result.failed, result.disabled_ms, result.ended_ms, *counted

    assert figures(followed=0) == figures(followed=deliveries)
