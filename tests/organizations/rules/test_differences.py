"""What changed between two sets of facts, as somebody reads it."""

from __future__ import annotations

from typing import Any

import pytest

from organizations.rules.differences import (
    NOTHING,
    SHOWN,
    Change,
    changes,
    field_in_words,
    in_words,
)


def test_only_fields_with_another_value_are_told() -> None:
    before = {"name": "Gateway", "enabled": True, "reason": ""}
    after = {"name": "Gateway", "enabled": False, "reason": "moving"}
    assert changes(before, after) == [
        Change("enabled", "yes", "no"),
        Change("reason", NOTHING, "moving"),
    ]


def test_what_is_new_has_no_value_before_and_what_is_gone_none_after() -> None:
    assert changes({}, {"role": "owner"}) == [Change("role", "", "owner")]
    assert changes({"role": "owner"}, {}) == [Change("role", "owner", NOTHING)]


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("receivesCommands", "receives commands"),
        ("is_active", "is active"),
        ("previousSecretExpiresAt", "previous secret expires at"),
        ("name", "name"),
    ],
)
def test_fields_read_as_words(field: str, words: str) -> None:
    assert field_in_words(field) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, NOTHING),
        ("", NOTHING),
        ([], NOTHING),
        (False, "no"),
        (0, "0"),
        (24, "24"),
        (["a", "b"], "a, b"),
        ({"deep": 1}, '{"deep": 1}'),
        ("2026-12-01T06:41:26.560356Z", "2026-12-01 06:41:26 UTC"),
        ("2026-99-01T06:41:26.560356Z", "2026-99-01T06:41:26.560356Z"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31 23:59:59 UTC"),
    ],
)
def test_values_read_as_words(value: Any, words: str) -> None:
    assert in_words(value) == words


def test_a_long_value_is_cut() -> None:
    assert in_words("x" * 10_000) == "x" * (SHOWN - 1) + "…"
