"""The health strip and the schedule in words."""

from __future__ import annotations

import pytest

from webhooks.console.rows import schedule_in_words
from webhooks.console.strip import SLOTS, STEP, strip_of
from webhooks.rules.policies import COMMAND, EVENT


def test_the_newest_outcome_stands_on_the_right() -> None:
    strip = strip_of(["failed", "delivered", "delivered"])
    assert [bar.delivered for bar in strip.bars] == [True, True, False]
    assert strip.bars[-1].x == (SLOTS - 1) * STEP


def test_more_outcomes_than_slots_show_the_newest() -> None:
    strip = strip_of(["delivered"] * SLOTS + ["failed"] * 5)
    assert len(strip.bars) == SLOTS
    assert all(bar.delivered for bar in strip.bars)


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        ([], "No outcome yet"),
        (["delivered"], "The last one was delivered"),
        (["failed"], "The last one failed"),
        (["delivered"] * 3, "The last 3 all delivered"),
        (["failed"] * 3, "The last 3 all failed"),
        (["failed", "delivered"], "1 of the last 2 failed"),
    ],
)
def test_the_strip_in_words(outcomes: list[str], said: str) -> None:
    assert strip_of(outcomes).words == said


def test_a_schedule_in_words() -> None:
    assert schedule_in_words(EVENT) == "at once, then after 5 s and 10 s"
    assert schedule_in_words(COMMAND).endswith("25 s, 2 min 5 s and 10 min 25 s")
