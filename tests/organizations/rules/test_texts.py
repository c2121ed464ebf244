"""Somebody else's text in a mail."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from organizations.rules.texts import STAND_IN, WORD_JOINER, one_line, unlinked


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain", "plain"),
        ("é 🚀 日本", "é 🚀 日本"),
        ("👩‍🚀", "👩‍🚀"),
        ("two\r\nlines\tand  spaces ", "two lines and spaces"),
        ("Subject\r\nBcc: x@example.com", "Subject Bcc: x@example.com"),
        ("right\u202eto left", f"right{STAND_IN}to left"),
        ("half \ud800 surrogate", f"half {STAND_IN} surrogate"),
        ("\x1b[31mred\x00", f"{STAND_IN}[31mred{STAND_IN}"),
        ("<b>", "<b>"),
        ("", ""),
    ],
)
def test_a_line_looks_like_what_it_is(text: str, line: str) -> None:
    assert one_line(text, 100) == line


def test_a_long_line_is_cut_and_says_so() -> None:
    assert one_line("x" * 11, 10) == "x" * 9 + "…"
    assert one_line("x" * 10, 10) == "x" * 10


@given(st.text(st.characters(exclude_categories=())), st.integers(1, 50))
def test_whatever_comes_fits_a_header_and_a_database(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    line.encode()
    assert not set(line) & set("\r\n\0\u202e\u2028")
    assert one_line(line, limit) == line


@pytest.mark.parametrize(
    "text",
    [
        "https://evil.example/x",
        "www.evil.example",
        "evil.example",
        "a@evil.example",
        "HTTP://EVIL.DE",
    ],
)
def test_an_address_in_somebody_elses_text_becomes_no_link(text: str) -> None:
    inert = unlinked(text)
    assert inert.replace(WORD_JOINER, "") == text
    assert "://" not in inert
    assert all(f".{WORD_JOINER}" in inert[at : at + 2] for at, c in enumerate(inert) if c == ".")


def test_sentences_stay_as_they_are() -> None:
    text = "It failed. Then: nothing. 50 % of it, e.g. 🚀."
    assert unlinked(text).replace(f".{WORD_JOINER}", ".") == text
