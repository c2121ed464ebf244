"""Times and untrusted text as pages show them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from organizations.console import words

NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (59.4, "59 s"),
        (60, "1 min"),
        (155, "2 min 35 s"),
        (780, "13 min"),
        (3600, "1 h"),
        (122_850, "34 h 7 min"),
        (3 * 86_400 + 7200, "3 d 2 h"),
    ],
)
def test_a_span_has_at_most_two_units(seconds: float, said: str) -> None:
    assert words.span(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-3, "0 s ago"), (0, "0 s ago"), (59, "59 s ago"), (60, "1 min ago"), (7199, "1 h ago")],
)
def test_how_long_ago_has_one_unit_and_never_lies_ahead(seconds: int, said: str) -> None:
    assert words.ago(NOON - timedelta(seconds=seconds), NOON) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.2, "0:01"), (42, "0:42"), (725, "12:05"), (122_820, "34:07:00"), (0, ""), (-5, "")],
)
def test_a_countdown_shows_no_zero_while_something_is_left(seconds: float, said: str) -> None:
    assert words.countdown(NOON + timedelta(seconds=seconds), NOON) == said


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 日本 🚀", "plain é 日本 🚀"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[31mred", "␛[31mred"),
        ("exe\u202egpj.", "exe⟨U+202E⟩gpj."),
        ("a\u200bb", "a⟨U+200B⟩b"),
        ("\x7f\x85", "⟨U+007F⟩⟨U+0085⟩"),
    ],
)
def test_what_acts_on_the_text_around_it_is_made_visible(text: str, shown: str) -> None:
    assert words.inert(text) == shown
