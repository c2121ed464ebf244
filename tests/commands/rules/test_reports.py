"""What a report does, for every state it can find a command in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.rules.reports import (
    STATE_AFTER,
    Decision,
    Outcome,
    Reception,
    Standing,
    receive,
    state_on_delivery,
)
from commands.rules.states import TRANSITIONS, State

NOON = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
JUST_BEFORE = NOON - timedelta(microseconds=1)
YES, NO = Outcome.SUCCESS, Outcome.REJECTION
APPLIED = Decision(Reception.APPLIED)
REPEATED = Decision(Reception.REPEATED)
KEPT = Decision(Reception.KEPT_EARLY)


def refused(code: str, *, deadline_passed: bool = False) -> Decision:
    return Decision(Reception.REFUSED, code, deadline_passed)


# state, attempted, early report, the report, when -> what becomes of it
TABLE = [
    # In time, with the last microsecond before the deadline and the deadline itself.
    ("delivered", True, None, YES, JUST_BEFORE, APPLIED),
    ("delivered", True, None, NO, JUST_BEFORE, APPLIED),
    ("delivered", True, None, YES, NOON, refused("ack_too_late", deadline_passed=True)),
    ("timed_out", True, None, YES, NOON, refused("ack_too_late")),
    # Again, and the opposite, however late.
    ("acked", True, None, YES, NOON, REPEATED),
    ("acked", True, None, NO, JUST_BEFORE, refused("ack_conflict")),
    ("nacked", True, None, NO, NOON, REPEATED),
    ("nacked", True, None, YES, JUST_BEFORE, refused("ack_conflict")),
    # Early: an attempt is in flight or was made.
    ("queued", True, None, YES, JUST_BEFORE, KEPT),
    ("queued", True, YES, YES, JUST_BEFORE, KEPT),
    ("queued", True, YES, YES, NOON, KEPT),
    ("queued", True, YES, NO, JUST_BEFORE, refused("ack_conflict")),
    ("queued", True, None, YES, NOON, refused("ack_too_late")),
    # Nobody can know of a command that was never sent.
    ("queued", False, None, YES, JUST_BEFORE, refused("not_delivered")),
    ("queued", False, None, YES, NOON, refused("not_delivered")),
    ("logged", False, None, YES, JUST_BEFORE, refused("not_delivered")),
    # Over.
    ("failed", True, None, YES, JUST_BEFORE, refused("failed")),
    ("failed", True, YES, YES, JUST_BEFORE, refused("failed")),
    ("retracted", False, None, YES, JUST_BEFORE, refused("retracted")),
    ("retracted", True, YES, YES, NOON, refused("retracted")),
]


@pytest.mark.parametrize(("state", "attempted", "early", "outcome", "now", "decision"), TABLE)
def test_a_report_is_judged_by_where_the_command_stands(
    state: str,
    attempted: bool,
    early: Outcome | None,
    outcome: Outcome,
    now: datetime,
    decision: Decision,
) -> None:
    deadline = None if state == "logged" else NOON

    assert receive(Standing(State(state), attempted, deadline, early), outcome, now) == decision


@given(
    state=st.sampled_from(list(State)),
    attempted=st.booleans(),
    early=st.sampled_from([None, YES, NO]),
    outcome=st.sampled_from([YES, NO]),
    now=st.sampled_from([JUST_BEFORE, NOON]),
)
def test_every_report_is_applied_kept_repeated_or_refused_with_a_reason(
    state: State, attempted: bool, early: Outcome | None, outcome: Outcome, now: datetime
) -> None:
    decision = receive(Standing(state, attempted, NOON, early), outcome, now)

    assert bool(decision.code) == (decision.reception == Reception.REFUSED)
    if decision.reception == Reception.APPLIED:
        assert (state, STATE_AFTER[outcome]) in TRANSITIONS
    if decision.deadline_passed:
        assert (state, State.TIMED_OUT) in TRANSITIONS


@pytest.mark.parametrize(
    ("early", "delivered_at", "state"),
    [
        (None, JUST_BEFORE, None),
        (None, NOON, State.TIMED_OUT),
        (YES, JUST_BEFORE, State.ACKED),
        (NO, JUST_BEFORE, State.NACKED),
        (YES, NOON, State.ACKED),
        (NO, NOON, State.NACKED),
    ],
)
def test_a_delivery_goes_on_at_once_where_it_must(
    early: Outcome | None, delivered_at: datetime, state: State | None
) -> None:
    assert state_on_delivery(early, delivered_at, NOON) == state
