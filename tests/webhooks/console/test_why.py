"""Why a delivery stands where it stands, for everything that can have happened."""

from __future__ import annotations

from typing import Any

import pytest

from webhooks.console.why import PING_AGAIN, READ_BACK, Last, Standing, why

ANSWERED = Last(1, "retry", 503, "")
SILENT = Last(2, "retry", None, "timeout")
LOST = Last(1, "lost", None, "")


def standing(**facts: Any) -> Standing:
    """A delivery of three attempts at most, of which one was made."""
    known = {
        "state": "pending",
        "failure_reason": "",
        "attempts": 1,
        "planned": 3,
        "flying": False,
        "is_ping": False,
        "last": ANSWERED,
    }
    return Standing(**{**known, **facts})


FAILED = {"state": "failed", "attempts": 3, "failure_reason": "attempts_exhausted"}


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"attempts": 0, "last": None}, "The first attempt is about to start."),
        ({}, "Attempt 2 of 3 follows: attempt 1 was answered with 503."),
        ({"last": LOST}, "attempt 1 was lost on our side: nobody knows whether it arrived."),
        ({"flying": True, "attempts": 2}, "Attempt 2 of 3 is on the wire."),
        (
            {"state": "delivered", "last": Last(2, "delivered", 204, "")},
            "Delivered: attempt 2 was answered with 204.",
        ),
        ({"state": "delivered", "last": None}, "It was delivered."),
        (FAILED, "None of 3 attempts delivered it; the last was answered with 503."),
        (FAILED | {"last": SILENT}, "the last had no answer: timeout."),
        (FAILED | {"planned": 1}, "The only attempt was answered with 503."),
        (
            {"state": "failed", "failure_reason": "refused", "last": Last(1, "failed", 404, "")},
            "The receiver refused it: attempt 1 was answered with 404, which ends it.",
        ),
        (
            {
                "state": "failed",
                "failure_reason": "refused",
                "last": Last(1, "failed", None, "blocked_address"),
            },
            "an address that may not be connected to",
        ),
        (
            {"state": "failed", "failure_reason": "endpoint_disabled"},
            "Its endpoint was disabled before it was delivered.",
        ),
        (
            {"state": "failed", "failure_reason": "attempts_exhausted", "last": None},
            "It failed before anything was sent.",
        ),
        ({"state": "cancelled"}, "It was withdrawn before it was delivered."),
    ],
)
def test_what_happened(facts: dict[str, Any], said: str) -> None:
    assert said in why(standing(**facts)).what


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({}, "Nothing is to be done"),
        ({"state": "delivered"}, ""),
        (FAILED, READ_BACK),
        (FAILED | {"failure_reason": "refused"}, "Was that deliberate?"),
        (FAILED | {"failure_reason": "endpoint_disabled"}, "replays nothing"),
        (FAILED | {"is_ping": True}, PING_AGAIN),
        ({"state": "cancelled"}, "No further attempt starts."),
    ],
)
def test_what_to_do(facts: dict[str, Any], said: str) -> None:
    assert said in why(standing(**facts)).next_step
