"""When two requests to issue a command ask for the same thing."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from commands.rules.fingerprint import fingerprint

TEXTS = st.tuples(st.text(max_size=4), st.text(max_size=4), st.text(max_size=4))


@given(one=TEXTS, other=TEXTS)
def test_different_requests_have_different_fingerprints(
    one: tuple[str, str, str], other: tuple[str, str, str]
) -> None:
    assert (fingerprint(*one) == fingerprint(*other)) == (one == other)


def test_moving_a_character_to_the_next_part_makes_another_request() -> None:
    assert fingerprint("a", "bc", "") != fingerprint("ab", "c", "")


def test_a_fingerprint_is_a_digest_of_the_parts_with_their_lengths() -> None:
    expected = hashlib.sha256("1:d6:turné2:{}".encode()).hexdigest()

    assert fingerprint("d", "turné", "{}") == expected
