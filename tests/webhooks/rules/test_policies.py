"""The three policies are the contract's tables: schedules that receivers size their memory against."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from webhooks.rules.policies import COMMAND, EVENT, PRESETS, TELEMETRY, Policy

CONTRACT: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "data" / "vectors.json").read_text()
)["policies"]
EACH = pytest.mark.parametrize("name", CONTRACT)


def test_the_policies_are_those_of_the_contract() -> None:
    assert PRESETS == {"command": COMMAND, "telemetry": TELEMETRY, "event": EVENT}
    assert PRESETS.keys() == CONTRACT.keys()


@EACH
def test_a_schedule_is_that_of_the_contract(name: str) -> None:
    policy, promised = PRESETS[name], CONTRACT[name]

    assert policy.name == name
    assert policy.attempts == promised["attempts"]
    assert list(policy.waits_s) == promised["waits_s"]
    assert list(policy.accumulated_s) == promised["accumulated_s"]


@EACH
def test_a_disable_rule_is_that_of_the_contract(name: str) -> None:
    rule = PRESETS[name].disable_rule

    assert {"kind": rule.kind, "count": rule.count} == CONTRACT[name]["disable_rule"]


@pytest.mark.parametrize(
    ("policy", "span_s"), [(COMMAND, 13 * 60), (TELEMETRY, 34 * 3600 + 7 * 60 + 30), (EVENT, 15)]
)
def test_a_schedule_spans_what_is_promised(policy: Policy, span_s: int) -> None:
    assert policy.accumulated_s[-1] == span_s


@EACH
def test_each_wait_follows_the_attempt_before_and_none_the_last(name: str) -> None:
    policy = PRESETS[name]

    waits = [policy.wait_after(number) for number in range(1, policy.attempts + 1)]

    assert waits == [*CONTRACT[name]["waits_s"][1:], None]


@EACH
def test_no_attempt_follows_one_that_was_too_many(name: str) -> None:
    policy = PRESETS[name]

    assert policy.wait_after(policy.attempts + 1) is None
    assert policy.wait_after(99) is None
