"""Policies that the settings add: what is taken, and what is refused with which reason."""

from __future__ import annotations

import json
from typing import Any

import pytest

from webhooks.rules.policies import (
    PRESETS,
    DisableRule,
    Policy,
    PolicyRefused,
    RuleKind,
    from_terms,
    parse,
    terms_of,
)

RULE = {"kind": "attempts_in_a_row", "count": 20}
FAST = {"waitsS": [0, 1, 2], "stopsOnRefusal": True, "disableRule": RULE}
DAY = 86_400


def test_a_policy_has_the_form_of_the_presets() -> None:
    assert parse(json.dumps({"fast": FAST})) == {
        "fast": Policy("fast", (0, 1, 2), True, DisableRule(RuleKind.ATTEMPTS_IN_A_ROW, 20))
    }


def test_none_is_fine() -> None:
    assert parse("{}") == {}


@pytest.mark.parametrize("policy", PRESETS.values())
def test_terms_say_all_of_a_policy(policy: Policy) -> None:
    assert from_terms(policy.name, json.loads(json.dumps(terms_of(policy)))) == policy


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"waitsS": []}, "1 to 30 waits"),
        ({"waitsS": [0] + [1] * 30}, "1 to 30 waits"),
        ({"waitsS": 5}, "1 to 30 waits"),
        ({"waitsS": [5, 10]}, "first wait is 0"),
        ({"waitsS": [0, 0]}, "after the first is 1"),
        ({"waitsS": [0, -5]}, "after the first is 1"),
        ({"waitsS": [0, 7 * DAY + 1]}, "7 days"),
        ({"waitsS": [0] + [7 * DAY] * 4 + [2 * DAY + 1]}, "30 days"),
        ({"waitsS": [0, 1.5]}, "whole number"),
        ({"waitsS": [0, "5"]}, "whole number"),
        ({"waitsS": [False, 5]}, "whole number"),
        ({"waitsS": [0, None]}, "whole number"),
        ({"stopsOnRefusal": 1}, "true or false"),
        ({"stopsOnRefusal": None}, "true or false"),
        ({"disableRule": {**RULE, "count": 0}}, "1 to 1000"),
        ({"disableRule": {**RULE, "count": -1}}, "1 to 1000"),
        ({"disableRule": {**RULE, "count": 1001}}, "1 to 1000"),
        ({"disableRule": {**RULE, "count": True}}, "1 to 1000"),
        ({"disableRule": {**RULE, "kind": "mood"}}, "attempts_in_a_row, deliveries_in_a_row"),
        ({"disableRule": {**RULE, "kind": []}}, "attempts_in_a_row, deliveries_in_a_row"),
        ({"disableRule": {"count": 5}}, "disableRule is an object with count, kind"),
        ({"disableRule": 20}, "disableRule is an object with count, kind"),
        ({"timeoutS": 60}, "A policy is an object with"),
    ],
)
def test_terms_that_cannot_work_are_refused(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(PolicyRefused) as refusal:
        parse(json.dumps({"fast": {**FAST, **change}}))

    assert str(refusal.value).startswith("fast: ")
    assert reason in str(refusal.value)


@pytest.mark.parametrize("missing", FAST)
def test_nothing_is_guessed(missing: str) -> None:
    with pytest.raises(PolicyRefused, match="nothing else"):
        parse(json.dumps({"fast": {k: v for k, v in FAST.items() if k != missing}}))


@pytest.mark.parametrize("waits", [[0] * 1, [0] + [1] * 29, [0] + [7 * DAY] * 4 + [2 * DAY]])
def test_the_bounds_themselves_are_allowed(waits: list[int]) -> None:
    assert parse(json.dumps({"edge": {**FAST, "waitsS": waits}}))["edge"].waits_s == tuple(waits)


@pytest.mark.parametrize("name", ["", "Fast", "1st", "very fast", "x" * 33, "a.b", "fäst", "a\n"])
def test_a_name_is_one_word(name: str) -> None:
    with pytest.raises(PolicyRefused, match="no name of a policy"):
        parse(json.dumps({name: FAST}))


@pytest.mark.parametrize("name", [*PRESETS, "ping"])
def test_the_console_s_own_cannot_be_changed(name: str) -> None:
    with pytest.raises(PolicyRefused, match="cannot be changed"):
        parse(json.dumps({name: FAST}))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ("{fast}", "not JSON"),
        ("[]", "object by name"),
        ("null", "object by name"),
        ('{"fast": null}', "A policy is an object"),
        ('{"fast": {}, "fast": {}}', "twice"),
    ],
)
def test_what_is_no_object_of_policies_is_refused(text: str, reason: str) -> None:
    with pytest.raises(PolicyRefused, match=reason):
        parse(text)
