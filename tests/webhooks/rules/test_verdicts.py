"""What each answer means under each policy, and what follows from it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhooks.rules.policies import COMMAND, EVENT, PRESETS
from webhooks.rules.verdicts import (
    Delivered,
    ErrorKind,
    Failed,
    FailureReason,
    Next,
    Verdict,
    Waiting,
    verdict_on_error,
    verdict_on_status,
    what_follows,
)

NOON = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
TABLE: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "data" / "vectors.json").read_text()
)["classification"]
VERDICTS = {"delivered": Verdict.DELIVERED, "retry": Verdict.RETRY, "fail": Verdict.FAIL}
ON_STATUS = [(r["policy"], r["status"], VERDICTS[r["verdict"]]) for r in TABLE if "status" in r]
ON_ERROR = [(r["policy"], r["error"], VERDICTS[r["verdict"]]) for r in TABLE if "error" in r]


def test_the_table_has_every_policy_and_every_kind_of_error() -> None:
    assert {policy for policy, _, _ in ON_STATUS} == PRESETS.keys()
    assert {(policy, kind) for policy, kind, _ in ON_ERROR} == {
        (policy, kind.value) for policy in PRESETS for kind in ErrorKind
    }


@pytest.mark.parametrize("policy", PRESETS)
def test_a_status_is_judged_as_in_the_contract(policy: str) -> None:
    judged = [(p, s, verdict_on_status(PRESETS[p], s)) for p, s, _ in ON_STATUS if p == policy]

    assert judged == [row for row in ON_STATUS if row[0] == policy]


@pytest.mark.parametrize(("policy", "error", "verdict"), ON_ERROR)
def test_an_error_is_judged_as_in_the_contract(policy: str, error: str, verdict: Verdict) -> None:
    assert verdict_on_error(PRESETS[policy], error) == verdict


@given(policy=st.sampled_from(list(PRESETS)), status=st.integers(100, 999))
def test_only_a_2xx_delivers_and_an_event_is_never_refused(policy: str, status: int) -> None:
    verdict = verdict_on_status(PRESETS[policy], status)

    assert (verdict == Verdict.DELIVERED) == (200 <= status <= 299)
    assert verdict != Verdict.LOST
    if policy == "event":
        assert verdict != Verdict.FAIL


@pytest.mark.parametrize("status", [100, 101, 199])
def test_an_interim_status_is_no_answer(status: int) -> None:
    assert verdict_on_status(COMMAND, status) == Verdict.RETRY


@pytest.mark.parametrize(
    ("verdict", "number", "enabled", "following"),
    [
        # A 2xx delivers, whatever became of the endpoint.
        (Verdict.DELIVERED, 1, True, Delivered()),
        (Verdict.DELIVERED, 5, False, Delivered()),
        # A refusal ends it.
        (Verdict.FAIL, 1, True, Failed(FailureReason.REFUSED)),
        (Verdict.FAIL, 5, False, Failed(FailureReason.REFUSED)),
        # The next attempt, counted from the end of this one.
        (Verdict.RETRY, 1, True, Waiting(NOON + timedelta(seconds=5))),
        (Verdict.RETRY, 4, True, Waiting(NOON + timedelta(seconds=625))),
        (Verdict.LOST, 2, True, Waiting(NOON + timedelta(seconds=25))),
        # The last one.
        (Verdict.RETRY, 5, True, Failed(FailureReason.ATTEMPTS_EXHAUSTED)),
        (Verdict.LOST, 5, True, Failed(FailureReason.ATTEMPTS_EXHAUSTED)),
        # Nothing waits at a disabled endpoint.
        (Verdict.RETRY, 1, False, Failed(FailureReason.ENDPOINT_DISABLED)),
        (Verdict.LOST, 4, False, Failed(FailureReason.ENDPOINT_DISABLED)),
        (Verdict.RETRY, 5, False, Failed(FailureReason.ATTEMPTS_EXHAUSTED)),
    ],
)
def test_what_follows_an_attempt(
    verdict: Verdict, number: int, enabled: bool, following: Next
) -> None:
    assert what_follows(COMMAND, number, verdict, NOON, enabled) == following


@given(
    policy=st.sampled_from(list(PRESETS.values())),
    number=st.integers(1, 20),
    verdict=st.sampled_from([Verdict.RETRY, Verdict.LOST]),
)
def test_a_delivery_waits_as_long_as_attempts_are_left(
    policy: Any, number: int, verdict: Verdict
) -> None:
    following = what_follows(policy, number, verdict, NOON, True)

    assert isinstance(following, Waiting) == (number < policy.attempts)


def test_a_refusal_of_an_event_is_retried() -> None:
    verdict = verdict_on_status(EVENT, 404)

    assert what_follows(EVENT, 1, verdict, NOON, True) == Waiting(NOON + timedelta(seconds=5))
