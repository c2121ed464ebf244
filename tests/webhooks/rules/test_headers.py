"""Headers that an owner has sent along: which are taken, and how a change is merged."""

from __future__ import annotations

import pytest

from webhooks.rules.headers import HeaderRefused, merged


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", "Bearer abc.def-ghi=="),
        ("X-Api-Key", "k"),
        ("x-tenant", "Straße 🚀"),
        ("Accept", "application/json"),
        ("X-Odd!#$%&'*+.^_`|~9", 'a, b; c="d"'),
        ("X-Long", "x" * 1024),
        ("X-Inner", "two words"),
    ],
)
def test_a_header_of_the_owner_s_is_taken_as_it_is(name: str, value: str) -> None:
    assert merged({}, {name: value}) == {name: value}


@pytest.mark.parametrize(
    "name",
    [
        *("Connection", "Keep-Alive", "TE", "Trailer", "Transfer-Encoding", "Upgrade"),
        *("Proxy-Authorization", "Proxy-Connection"),
        *("Host", "Content-Length", "Content-Type", "Content-Encoding", "Expect"),
        *("User-Agent", "Accept-Encoding", "Cookie", "Set-Cookie", "Date"),
        *("Forwarded", "X-Forwarded-For", "X-Real-IP", "Via"),
        *("webhook-id", "Webhook-Signature", "X-Webhook-Event", "x-webhook-anything"),
    ],
)
@pytest.mark.parametrize("change", [str, str.lower, str.upper])
def test_what_belongs_to_the_exchange_or_the_signature_is_refused(
    name: str, change: type[str]
) -> None:
    with pytest.raises(HeaderRefused, match="set by the console"):
        merged({}, {change(name): "x"})


@pytest.mark.parametrize(
    "name", ["", " ", "X Key", "X-Key:", "X-Key\r\nHost", "X\0", "Schlüssel", "(x)", "x" * 101]
)
def test_a_name_is_a_token(name: str) -> None:
    with pytest.raises(HeaderRefused, match="letters, digits and marks"):
        merged({}, {name: "x"})


@pytest.mark.parametrize(
    "value",
    [
        *("a\rb", "a\nb", "a\r\nX-Injected: yes", "a\0b", "a\tb", "a\x7fb", "a\x85b", "a\u2028b"),
        *(" x", "x ", "\ud800"),
    ],
)
def test_a_value_with_a_line_break_or_the_like_is_refused_and_not_repeated(value: str) -> None:
    with pytest.raises(HeaderRefused) as refusal:
        merged({}, {"X-Key": value})

    assert value not in str(refusal.value)


@pytest.mark.parametrize("value", ["", "x" * 1025, "é" * 513])
def test_a_value_has_up_to_1024_bytes(value: str) -> None:
    with pytest.raises(HeaderRefused, match="1024 bytes"):
        merged({}, {"X-Key": value})


def test_names_that_differ_in_case_are_the_same() -> None:
    assert merged({"X-Key": "old"}, {"x-key": "new"}) == {"x-key": "new"}
    assert merged({"X-Key": "old"}, {"x-KEY": None}) == {}
    with pytest.raises(HeaderRefused, match="twice"):
        merged({}, {"X-Key": "one", "x-key": "two"})


def test_a_change_leaves_what_it_does_not_name() -> None:
    known = {"X-A": "1", "X-B": "2", "X-C": "3"}

    assert merged(known, {"X-B": None, "X-C": "4", "X-D": "5"}) == {
        "X-A": "1",
        "X-C": "4",
        "X-D": "5",
    }
    assert merged(known, {}) == known
    assert merged(known, {"X-Unknown": None}) == known


def test_there_are_twenty_at_most() -> None:
    twenty = {f"X-{n}": "x" for n in range(20)}

    assert merged({}, twenty) == twenty
    assert len(merged(twenty, {"X-0": None, "X-20": "x"})) == 20
    with pytest.raises(HeaderRefused, match="at most 20"):
        merged(twenty, {"X-20": "x"})
