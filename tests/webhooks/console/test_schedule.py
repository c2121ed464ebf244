"""The schedule line: where attempts, deadline and now stand on the bent axis."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from webhooks.console import schedule
from webhooks.console.schedule import Facts, Made
from webhooks.rules.policies import COMMAND, EVENT, PING, PRESETS, TELEMETRY, Policy

BEGUN = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return BEGUN + timedelta(seconds=seconds)


def made(
    number: int, at: float, verdict: str = "retry", took: float = 0.1, late: float = 0.008
) -> Made:
    return Made(
        number=number,
        due_at=after(at),
        started_at=after(at + late),
        finished_at=after(at + late + took) if verdict else None,
        verdict=verdict,
        status_code=503 if verdict == "retry" else 200 if verdict == "delivered" else None,
    )


def facts(policy: Policy = COMMAND) -> Facts:
    """Just dispatched, the first attempt due."""
    return Facts(
        policy=policy,
        begun_at=BEGUN,
        made=[],
        next_attempt_at=BEGUN,
        open=True,
        waiting=True,
        now=after(1),
        ack_deadline=after(300),
    )


@pytest.mark.parametrize("policy", PRESETS.values())
def test_attempts_stand_in_their_order_and_apart_from_each_other(policy: Policy) -> None:
    places = [marker.x for marker in schedule.draw(facts(policy)).markers]
    assert len(places) == policy.attempts
    assert places[0] == 0
    assert places[-1] <= 100
    gaps = [later - earlier for earlier, later in itertools.pairwise(places)]
    assert min(gaps) > 4, "narrower than a marker on a small screen"


def test_waits_that_double_lie_equally_far_apart() -> None:
    places = [tick.x for tick in schedule.plan(TELEMETRY)]
    gaps = {round(later - earlier, 1) for earlier, later in itertools.pairwise(places)}
    assert max(gaps) - min(gaps) <= 0.2


def test_offsets_are_those_of_the_policy() -> None:
    labels = [tick.label for tick in schedule.plan(COMMAND)]
    assert labels == ["0 s", "5 s", "30 s", "2 min 35 s", "13 min"]


def test_a_single_attempt_has_a_place_too() -> None:
    assert [(tick.x, tick.label) for tick in schedule.plan(PING)] == [(0, "0 s")]


def test_what_was_made_shows_its_outcome_and_its_lateness() -> None:
    line = schedule.draw(replace(facts(), made=[made(1, 0)], next_attempt_at=after(5.1)))
    first, second = line.markers[:2]
    assert (first.outcome, first.label, first.lateness) == ("failed", "503", "+8 ms")
    assert (second.outcome, second.number) == ("planned", 2)


def test_slow_attempts_push_what_follows_beyond_the_plan() -> None:
    slow = made(1, 0, took=10)
    line = schedule.draw(replace(facts(), made=[slow], next_attempt_at=after(15)))
    assert line.markers[1].x > line.ticks[1].x
    assert line.markers[-1].x <= 100


def test_an_attempt_on_the_wire_has_no_outcome_and_the_rest_is_reckoned_from_it() -> None:
    line = schedule.draw(replace(facts(), made=[made(1, 0, verdict="")], next_attempt_at=None))
    assert [marker.outcome for marker in line.markers] == ["flying", *["planned"] * 4]
    assert line.markers[0].label == "on the wire"


def test_after_the_end_what_was_planned_is_not_needed_any_more() -> None:
    ended = replace(
        facts(), made=[made(1, 0, "delivered")], next_attempt_at=None, open=False, waiting=False
    )
    line = schedule.draw(ended)
    assert [marker.outcome for marker in line.markers] == ["delivered", *["dropped"] * 4]
    assert line.now is None
    assert "not needed" not in line.summary


def test_an_attempt_whose_outcome_is_unknown_says_so() -> None:
    line = schedule.draw(replace(facts(), made=[made(1, 0, "lost")], next_attempt_at=after(5)))
    assert (line.markers[0].outcome, line.markers[0].label) == ("lost", "unknown")


def test_a_failure_without_an_answer_says_which() -> None:
    reset = replace(made(1, 0), status_code=None, error_kind="connection_reset")
    line = schedule.draw(replace(facts(), made=[reset], next_attempt_at=after(5)))
    assert line.markers[0].label == "reset"


def test_the_deadline_stands_on_the_same_axis_also_beyond_the_last_attempt() -> None:
    near = schedule.draw(facts())
    assert near.deadline
    assert near.markers[3].x < near.deadline.x < near.markers[4].x
    far = schedule.draw(replace(facts(EVENT), ack_deadline=after(3600)))
    assert far.deadline
    assert far.markers[-1].x < far.deadline.x <= 100
    assert far.deadline.side == "turned"


def test_now_moves_and_stops_at_the_end_of_the_axis() -> None:
    early, late, long_after = (
        schedule.draw(replace(facts(), now=after(seconds))).now for seconds in (1, 60, 86_400)
    )
    assert early
    assert late
    assert long_after
    assert early.x < late.x < long_after.x == 100


def test_a_report_stands_where_it_came() -> None:
    line = schedule.draw(replace(facts(), reported_at=after(42)))
    assert line.reported
    assert line.markers[2].x < line.reported.x < line.markers[3].x


def test_a_retraction_before_the_first_attempt_leaves_only_the_plan() -> None:
    line = schedule.draw(replace(facts(), next_attempt_at=None, open=False, waiting=False))
    assert line.markers == []
    assert len(line.ticks) == 5
    assert line.summary.startswith("No attempt yet")


@pytest.mark.parametrize("policy", [EVENT, TELEMETRY, PING])
def test_a_delivery_without_a_report_to_wait_for_has_no_deadline(policy: Policy) -> None:
    line = schedule.draw(replace(facts(policy), ack_deadline=None))
    assert line.deadline is None
    assert len(line.markers) == policy.attempts
    assert "deadline" not in line.summary
    assert all(0 <= marker.x <= 100 for marker in line.markers)
