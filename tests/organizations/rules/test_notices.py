"""When a notice is tried again, and when it is given up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from organizations.rules.notices import GIVE_UP_AFTER, next_try_at

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("tries", "wait_s"),
    [(1, 10), (2, 60), (3, 300), (4, 1800), (5, 7200), (6, 7200), (40, 7200)],
)
def test_waits_grow_to_two_hours(tries: int, wait_s: int) -> None:
    assert next_try_at(tries, NOON, NOON) == NOON + timedelta(seconds=wait_s)


def test_it_is_given_up_by_age_not_by_the_number_of_tries() -> None:
    almost = NOON + GIVE_UP_AFTER - timedelta(seconds=1)
    assert next_try_at(1000, NOON, almost) == almost + timedelta(hours=2)
    assert next_try_at(1, NOON, NOON + GIVE_UP_AFTER) is None
