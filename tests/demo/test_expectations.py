"""The demo's judge: an observation as it must be passes, and each way to be wrong is named."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from demo.expectations import (
    AttemptSeen,
    Expectation,
    Observation,
    PostSeen,
    attempts_from_rows,
    posts_from_log,
    unmet,
)

T0 = datetime(2026, 1, 1, tzinfo=UTC)
FLAKY = Expectation("acked", (503, 503, 200), "acked")
UNARMED = Expectation("logged", (), "dispatch_refused", refusal="dataset_unarmed")


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def attempt(number: int, due: float, outcome: int | str, late_ms: float = 10) -> AttemptSeen:
    started = at(due) + timedelta(milliseconds=late_ms)
    return AttemptSeen(number, at(due), started, started + timedelta(milliseconds=5), outcome)


def post(number: int, seconds: float, *, signature_ok: bool = True) -> PostSeen:
    return PostSeen(at(seconds), "msg_1", number, signature_ok)


GOOD = Observation(
    state="acked",
    diagnosis="acked",
    refusal=None,
    attempts=(attempt(1, 0, 503), attempt(2, 5.02, 503), attempt(3, 30.04, 200)),
    posts=(post(1, 0.02), post(2, 5.04), post(3, 30.06)),
)
REFUSED = Observation("logged", "dispatch_refused", "dataset_unarmed", (), ())


def with_attempt(changed: AttemptSeen) -> Observation:
    attempts = [changed if each.number == changed.number else each for each in GOOD.attempts]
    return replace(GOOD, attempts=tuple(attempts))


def test_a_command_that_ended_as_it_must_has_nothing_unmet() -> None:
    assert unmet(FLAKY, GOOD) == []


def test_a_dispatch_that_was_refused_as_it_must_be_has_nothing_unmet() -> None:
    assert unmet(UNARMED, REFUSED) == []


@pytest.mark.parametrize(
    ("seen", "failure"),
    [
        (replace(GOOD, state="queued"), "the state: expected acked, saw queued"),
        (replace(GOOD, diagnosis="retrying"), "the diagnosis: expected acked, saw retrying"),
        (
            replace(GOOD, refusal="no_endpoint"),
            "the dispatch: expected accepted, saw refused with no_endpoint",
        ),
        (
            replace(GOOD, attempts=GOOD.attempts[:2], posts=GOOD.posts[:2]),
            "the attempts: expected 3 (503, 503, 200), saw 2 (503, 503)",
        ),
        (
            with_attempt(attempt(2, 5.02, "timeout")),
            "the attempts: expected 3 (503, 503, 200), saw 3 (503, timeout, 200)",
        ),
        (
            replace(GOOD, posts=(*GOOD.posts, post(4, 160))),
            "POSTs at the receiver: expected 3, saw 4",
        ),
        (replace(GOOD, posts=GOOD.posts[:2]), "POSTs at the receiver: expected 3, saw 2"),
        (
            replace(GOOD, posts=(*GOOD.posts[:2], post(3, 30.06, signature_ok=False))),
            "a POST came with a signature that does not verify",
        ),
        (
            replace(GOOD, posts=(*GOOD.posts[:2], PostSeen(at(30.06), "msg_2", 3, True))),
            "webhook-id changed between the attempts",
        ),
        (
            replace(GOOD, posts=(post(1, 0.02), post(1, 5.04), post(3, 30.06))),
            "the POSTs were numbered [1, 1, 3], not 1 to 3",
        ),
        (
            replace(GOOD, posts=(post(1, 0.02), post(2, 4.9), post(3, 30.06))),
            "POST 2 came 4.9 s after the one before, sooner than 5 s",
        ),
        (
            with_attempt(attempt(2, 5.02, 503, late_ms=251)),
            "attempt 2 started 251 ms late, more than 250 ms",
        ),
        (with_attempt(attempt(2, 5.02, 503, late_ms=-0.5)), "attempt 2 started 0.5 ms early"),
        (
            with_attempt(attempt(3, 35.02, 200)),
            "attempt 3 was promised 30.0 s after the one before, not 25 s",
        ),
        (
            with_attempt(replace(GOOD.attempts[1], due=None)),
            "attempt 2 was made at a time nothing promised",
        ),
    ],
)
def test_what_is_wrong_is_said_in_words_and_nothing_else(seen: Observation, failure: str) -> None:
    assert unmet(FLAKY, seen) == [failure]


@pytest.mark.parametrize("late_ms", [0, 250])
def test_a_retry_may_start_from_its_time_until_250_ms_after(late_ms: float) -> None:
    assert unmet(FLAKY, with_attempt(attempt(2, 5.02, 503, late_ms=late_ms))) == []


def test_the_first_attempt_is_no_retry_and_its_lateness_is_not_judged() -> None:
    assert unmet(FLAKY, with_attempt(attempt(1, 0, 503, late_ms=900))) == [
        "attempt 2 was promised 4.1 s after the one before, not 5 s"
    ]
    once = Observation("acked", "acked", None, (attempt(1, 0, 200, late_ms=900),), (post(1, 1),))
    assert unmet(Expectation("acked", (200,), "acked"), once) == []


def test_a_dispatch_that_should_have_been_refused_is_told_with_all_it_led_to() -> None:
    delivered = Observation("acked", "acked", None, (attempt(1, 0, 200),), (post(1, 0.01),))
    assert unmet(UNARMED, delivered) == [
        "the dispatch: expected refused with dataset_unarmed, saw accepted",
        "the state: expected logged, saw acked",
        "the attempts: expected none, saw 1 (200)",
        "the diagnosis: expected dispatch_refused, saw acked",
    ]


def test_a_second_post_after_a_retraction_is_found_though_the_console_records_none() -> None:
    retracted = Expectation("retracted", (500,), "retracted")
    seen = Observation(
        "retracted", "retracted", None, (attempt(1, 0, 500),), (post(1, 0.01), post(2, 5.02))
    )
    assert unmet(retracted, seen) == ["POSTs at the receiver: expected 1, saw 2"]


def test_rows_of_the_api_become_attempts_each_due_when_the_one_before_said() -> None:
    newest_first = [
        row(2, "2026-01-01T00:00:05.030000Z", 200, None),
        row(1, "2026-01-01T00:00:00.010000Z", None, "2026-01-01T00:00:05.015000Z"),
    ]
    first, second = attempts_from_rows(newest_first, dispatched=T0)
    assert (first.number, first.outcome, first.lateness_ms) == (1, "connection_refused", 10)
    assert (second.number, second.outcome, second.lateness_ms) == (2, 200, 15)


def test_an_attempt_still_open_says_so_and_no_rows_are_no_attempts() -> None:
    open_row = row(1, "2026-01-01T00:00:00Z", None, None) | {"errorKind": None, "finishedAt": None}
    assert [each.outcome for each in attempts_from_rows([open_row], T0)] == ["open"]
    assert attempts_from_rows([], dispatched=None) == ()


def test_entries_of_the_receivers_log_become_posts() -> None:
    entry: dict[str, object] = {
        "arrived": T0.timestamp() + 0.25,
        "webhookId": "msg_1",
        "attempt": None,
        "signatureOk": True,
    }
    assert posts_from_log([entry]) == (PostSeen(at(0.25), "msg_1", None, True),)


def row(
    number: int, started: str, status: int | None, next_attempt: str | None
) -> dict[str, object]:
    return {
        "number": number,
        "startedAt": started,
        "finishedAt": started,
        "statusCode": status,
        "errorKind": None if status else "connection_refused",
        "nextAttemptAt": next_attempt,
    }
