"""What a mail says, as words."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from organizations.rules.letters import WORDS, compose, why_disabled
from organizations.rules.notices import MUTABLE, NAMED, Kind

COMMAND = {"name": "hold", "token": "t-1", "reason": "refused", "detail": ""}
MEMBER = {"name": "operator", "by": "owner@example.com"}
ENDPOINT: dict[str, Any] = {
    "name": "Gateway",
    "reason": "failed_20_times_in_a_row",
    "since": "2026-01-31T09:30:00.250000Z",
    "ended": 1,
    "errors": [],
}


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_has_words_for_one_and_for_many(kind: Kind) -> None:
    content = {Kind.ENDPOINT_DISABLED: ENDPOINT, Kind.MEMBER_ADDED: MEMBER}.get(kind, COMMAND)
    one = compose(kind, "Fleet", [(uuid4(), content)])
    many = compose(kind, "Fleet", [(uuid4(), content)] * 3)
    assert one.subject == f"{WORDS[kind].one}: {content['name']} (Fleet)"
    assert many.subject == f"3 {WORDS[kind].many} (Fleet)"
    assert one.can_be_switched_off == (kind in MUTABLE)


def test_a_letter_names_the_first_few_and_counts_the_rest() -> None:
    letter = compose(Kind.COMMAND_FAILED, "Fleet", [(uuid4(), COMMAND)] * (NAMED + 5))
    assert len(letter.items) == NAMED
    assert letter.left_out == 5


def test_a_command_is_told_with_its_reason_and_what_was_reported() -> None:
    content = COMMAND | {"reason": "", "detail": "see https://evil.example"}
    [item] = compose(Kind.COMMAND_NACKED, "Fleet", [(uuid4(), content)]).items
    assert item.title == "hold"
    token, reported = item.lines
    assert token == "Client token t-1"
    assert "https://evil" not in reported


def test_an_endpoint_is_told_with_its_last_errors() -> None:
    error = {"at": "2026-01-31T09:29:00Z", "words": "It answered 503.", "said": ""}
    [item] = compose(Kind.ENDPOINT_DISABLED, "F", [(uuid4(), ENDPOINT | {"errors": [error]})]).items
    assert item.lines == [
        "Disabled at 2026-01-31 09:30:00 UTC. It failed 20 times in a row.",
        "1 waiting delivery ended as failed.",
        "2026-01-31 09:29:00 UTC: It answered 503.",
    ]


def test_an_owners_own_words_stay_his() -> None:
    assert why_disabled("Receiver is moving") == "Receiver is moving"
    assert why_disabled("failed_5_times_in_a_row") == "It failed 5 times in a row."
