"""The drawings of the last hour."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from webhooks.console.pace_chart import Chart, chart_of
from webhooks.pace import Minute, Tally

START = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def drawn(*tallies: Tally | None) -> Chart:
    """An hour that ends with these minutes."""
    hour = [Tally()] * (60 - len(tallies)) + list(tallies)
    return chart_of([Minute(START + timedelta(minutes=n), tally) for n, tally in enumerate(hour)])


def test_deliveries_stand_on_the_line_and_failures_hang_from_it_to_one_scale() -> None:
    chart = drawn(Tally(delivered=6), Tally(failed=4))
    assert (chart.top, chart.bottom, chart.line_y) == (6, 4, "60")
    assert chart.delivered == "M580,60h9v-60h-9z"
    assert chart.failed == "M590,60h9v40h-9z"


def test_where_nothing_failed_the_line_lies_at_the_bottom() -> None:
    assert drawn(Tally(delivered=1)).line_y == "100"
    assert drawn().line_y == "100"


@pytest.mark.parametrize(
    ("highest", "top"),
    [(0, 0), (7, 7), (9, 9), (10, 10), (11, 12), (16, 20), (99, 100), (101, 120), (8241, 10_000)],
)
def test_a_scale_ends_at_a_round_number(highest: int, top: int) -> None:
    assert drawn(Tally(delivered=highest)).top == top


def test_the_rate_is_a_line_that_rests_at_the_top_and_breaks_where_nothing_was_attempted() -> None:
    chart = drawn(Tally(3), Tally(1, 1), Tally(), Tally(0, 2))
    assert chart.rate_line == "M560,0 H570 V50 H580 M590,100 H600"
    assert chart.rate_missing == "M570,0h9v50h-9zM590,0h9v100h-9z"


def test_sums_and_the_rate_of_the_hour() -> None:
    chart = drawn(Tally(3, 1, 1), Tally(4, 0, 0))
    assert chart.sum == Tally(7, 1, 1)
    assert chart.rate == 0.875
    assert drawn(Tally(lost=1)).rate is None


def test_a_minute_that_is_not_counted_yet_says_so() -> None:
    chart = drawn(None, Tally(1))
    assert chart.counted == 59
    assert chart.uncounted == "M580,0h9v100h-9z"
    assert chart.columns[-2].words == "12:58: not counted yet"
    assert chart.columns[-1].words == "12:59: 1 delivered, 0 failed"


def test_the_axis_has_a_time_each_quarter_of_an_hour() -> None:
    assert [column.time for column in drawn().quarters] == ["12:00", "12:15", "12:30", "12:45"]
