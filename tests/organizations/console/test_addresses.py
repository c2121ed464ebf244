"""Addresses of lists: cursors read from them, and filters kept in them."""

from __future__ import annotations

from uuid import uuid4

import pytest
from django.http import QueryDict

from organizations.console import addresses


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "9" * 19, "\N{SUPERSCRIPT TWO}"])
def test_what_is_no_cursor_is_the_beginning(text: str) -> None:
    assert addresses.number(text) is None
    assert addresses.identifier(text) is None


def test_cursors_are_numbers_or_ids() -> None:
    some = uuid4()
    assert addresses.number("42") == 42
    assert addresses.identifier(str(some)) == some


def test_an_address_keeps_what_is_not_changed_and_drops_what_is_empty() -> None:
    query = QueryDict("state=failed&before=7&policy=")
    assert addresses.address("/x/", query, before=None) == "/x/?state=failed"
    assert addresses.address("/x/", query, before=9) == "/x/?state=failed&before=9"
    assert addresses.address("/x/", QueryDict(""), before=None) == "/x/"
