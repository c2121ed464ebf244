"""Streaks of failures under both kinds of rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhooks.rules.health import judge
from webhooks.rules.policies import COMMAND, EVENT, DisableRule

RULES = [COMMAND.disable_rule, EVENT.disable_rule]
GOOD, BAD = True, False


@pytest.mark.parametrize("rule", RULES)
def test_an_endpoint_without_outcomes_is_well(rule: DisableRule) -> None:
    health = judge(rule, [])

    assert health.recent_outcomes == ()
    assert (health.consecutive_failures, health.failures_until_disabled) == (0, rule.count)
    assert not health.failed_too_often


@pytest.mark.parametrize("rule", RULES)
def test_the_rule_fires_at_its_count_and_not_one_before(rule: DisableRule) -> None:
    almost, enough = judge(rule, [BAD] * (rule.count - 1)), judge(rule, [BAD] * rule.count)

    assert (almost.failures_until_disabled, almost.failed_too_often) == (1, False)
    assert (enough.failures_until_disabled, enough.failed_too_often) == (0, True)


@pytest.mark.parametrize("rule", RULES)
def test_only_failures_since_the_last_success_count(rule: DisableRule) -> None:
    health = judge(rule, [BAD, BAD, GOOD, *[BAD] * rule.count])

    assert health.consecutive_failures == 2
    assert not health.failed_too_often


@pytest.mark.parametrize("rule", RULES)
def test_a_success_last_starts_from_zero(rule: DisableRule) -> None:
    health = judge(rule, [GOOD, *[BAD] * (rule.count - 1)])

    assert (health.consecutive_failures, health.failures_until_disabled) == (0, rule.count)


def test_outcomes_are_told_newest_first_in_words() -> None:
    assert judge(COMMAND.disable_rule, [BAD, GOOD]).recent_outcomes == ("failed", "delivered")


@given(rule=st.sampled_from(RULES), outcomes=st.lists(st.booleans(), max_size=40))
def test_the_countdown_and_the_streak_always_add_up(
    rule: DisableRule, outcomes: list[bool]
) -> None:
    health = judge(rule, outcomes)

    streak = outcomes.index(GOOD) if GOOD in outcomes else len(outcomes)
    assert health.consecutive_failures == streak
    assert health.failures_until_disabled == max(rule.count - streak, 0)
    assert health.failed_too_often == (streak >= rule.count)
