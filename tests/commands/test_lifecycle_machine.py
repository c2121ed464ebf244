"""The lifecycle as a machine: whatever operators, integrators, workers, the clock and plain SQL do to a
command, in whatever order, it goes where a small model of the contract says, and tells it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import ClassVar

import psycopg
import pytest
from django.db import transaction
from django.db.models.functions import Now
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from commands import datasets, issuing, lifecycle
from commands.errors import Refused
from commands.models import Command
from commands.rules.reports import Outcome
from commands.rules.states import TRANSITIONS, State
from tests import factories
from tests.factories import Scene, attempts, fresh, lines, record
from tests.plain_sql import change, plain_connection, undone
from webhooks import endpoints
from webhooks.engine import tasks
from webhooks.engine.claims import Claimed
from webhooks.engine.recorder import Outcome as AttemptOutcome
from webhooks.models import Delivery

PLANNED = 5
SETTLED_BY = {Outcome.SUCCESS: State.ACKED, Outcome.REJECTION: State.NACKED}
CAME_TO_NOTHING = {State.FAILED, State.TIMED_OUT, State.NACKED, State.RETRACTED}


@dataclass
class Model:
    """What the contract says of one command."""

    state: State = State.LOGGED
    armed: bool = True
    enabled: bool = True
    overdue: bool = False
    delivery: str | None = None
    attempts: int = 0
    flying: Claimed | None = None
    early: Outcome | None = None
    story: list[str] = field(default_factory=lambda: ["issued"])
    kept: set[tuple[Outcome, str]] = field(default_factory=set)

    @property
    def waits(self) -> bool:
        return self.delivery == "pending" and self.flying is None

    def move(self, state: State) -> None:
        self.state = state
        self.story.append(state.value)

    def refusal(self) -> str | None:
        """Why a dispatch is refused."""
        if self.state != State.LOGGED:
            return "retracted" if self.state == State.RETRACTED else "already_dispatched"
        if not self.armed:
            return "dataset_unarmed"
        return None if self.enabled else "endpoint_disabled"

    def report(self, outcome: Outcome) -> str | None:
        """Take a report; the code with which it is refused."""
        code = self._report(outcome)
        if code and (outcome, code) not in self.kept:
            self.kept.add((outcome, code))
            self.story.append("report_refused")
        return code

    def _report(self, outcome: Outcome) -> str | None:
        match self.state:
            case State.FAILED | State.RETRACTED:
                return self.state.value
            case State.TIMED_OUT:
                return "ack_too_late"
            case State.ACKED | State.NACKED:
                return None if self.state == SETTLED_BY[outcome] else "ack_conflict"
            case State.DELIVERED if self.overdue:
                self.move(State.TIMED_OUT)
                return "ack_too_late"
            case State.DELIVERED:
                self.move(SETTLED_BY[outcome])
                return None
            case _:
                return self._report_early(outcome)

    def _report_early(self, outcome: Outcome) -> str | None:
        if not self.attempts:
            return "not_delivered"
        if self.early:
            return None if self.early == outcome else "ack_conflict"
        if self.overdue:
            return "ack_too_late"
        self.early = outcome
        self.story.append("report_early")
        return None

    def end_attempt(self, end: int | str, in_time: bool) -> None:
        """The attempt on the wire came to this."""
        self.flying = None
        if self.delivery == "cancelled":
            return
        if end == 200:
            self.delivery = "delivered"
            self.move(State.DELIVERED)
            if self.early:
                self.move(SETTLED_BY[self.early])
            elif self.overdue and not in_time:
                self.move(State.TIMED_OUT)
        elif end == 400 or self.attempts == PLANNED or not self.enabled:
            self.fail()

    def fail(self) -> None:
        self.delivery = "failed"
        self.move(State.FAILED)


def refusal_of(act: Callable[[], object]) -> str | None:
    """The code with which an act is refused; None where it is done."""
    try:
        act()
    except Refused as refusal:
        return refusal.code
    return None


class Lifecycle(RuleBasedStateMachine):
    """One command of one organization, in a transaction that is undone at the end."""

    scene: ClassVar[Scene]

    def __init__(self) -> None:
        super().__init__()
        self.example = transaction.atomic()
        self.example.__enter__()
        self.model, self.command = Model(), self.scene.issued()
        self.closed: list[Claimed] = []
        self.sql = plain_connection()

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.example.__exit__(None, None, None)

    # --- operators and owners -------------------------------------------------------------------

    @rule(armed=st.booleans())
    def arm_or_disarm(self, armed: bool) -> None:
        switch = datasets.arm if armed else datasets.disarm
        switch(self.scene.operator, self.scene.dataset.pk)
        self.model.armed = armed

    @rule()
    def disable_the_endpoint(self) -> None:
        endpoints.disable(self.scene.owner, self.scene.endpoint.pk, "")
        if self.model.waits:
            self.model.fail()
        self.model.enabled = False

    @rule()
    def enable_the_endpoint(self) -> None:
        endpoints.enable(self.scene.owner, self.scene.endpoint.pk)
        self.model.enabled = True

    @rule(overdue=st.booleans())
    def dispatch(self, overdue: bool) -> None:
        refusal, timeout_s = self.model.refusal(), 0 if overdue else 300

        dispatch = functools.partial(
            lifecycle.dispatch, self.scene.operator, self.command.pk, timeout_s
        )
        assert refusal_of(dispatch) == refusal

        self.model.story.append("dispatch_refused" if refusal else "dispatched")
        if not refusal:
            self.model.state, self.model.delivery = State.QUEUED, "pending"
            self.model.overdue = overdue

    # Rarely, because little is left to happen afterwards.
    @rule(meant=st.sampled_from([True, False, False, False]))
    def retract(self, meant: bool) -> None:
        if not meant:
            return
        retracted = lifecycle.retract(self.scene.operator, self.command.pk, "no longer wanted")
        assert retracted.attempt_on_the_wire == (self.model.flying is not None)
        if self.model.delivery == "pending":
            self.model.delivery = "cancelled"
        if self.model.state != State.RETRACTED:
            self.model.move(State.RETRACTED)

    @rule()
    def reissue(self) -> None:
        refusal = None if self.model.state in CAME_TO_NOTHING else "not_reissuable"
        token = f"reissue {len(self.model.story)}"

        reissue = functools.partial(issuing.reissue, self.scene.operator, self.command.pk, token)
        assert refusal_of(reissue) == refusal

        if not refusal:
            self.model.story.append("reissued")

    # --- integrators ----------------------------------------------------------------------------

    @rule(outcome=st.sampled_from(Outcome))
    def report(self, outcome: Outcome) -> None:
        report = functools.partial(
            lifecycle.acknowledge, self.scene.operator, self.command.pk, outcome
        )
        assert refusal_of(report) == self.model.report(outcome)

    # --- workers and the clock ------------------------------------------------------------------

    @precondition(lambda self: self.model.waits)
    @rule()
    def claim(self) -> None:
        self.model.flying = factories.claim(fresh(self.command))
        self.model.attempts += 1
        assert self.model.flying.number == self.model.attempts

    @precondition(lambda self: self.model.flying)
    @rule(end=st.sampled_from([200, 400, 503, 503, "timeout", "lost"]), in_time=st.booleans())
    def record(self, end: int | str, in_time: bool) -> None:
        attempt = self.model.flying
        assert attempt
        outcome = factories.ending(attempt, end)
        if in_time:
            outcome = self._before_the_deadline(outcome)

        assert record(outcome) == 1

        self.closed.append(attempt)
        self.model.end_attempt(end, in_time)

    def _before_the_deadline(self, outcome: AttemptOutcome) -> AttemptOutcome:
        deadline = fresh(self.command).ack_deadline
        assert deadline
        last_moment = deadline - timedelta(microseconds=1)
        return replace(outcome, finished_at=min(outcome.finished_at, last_moment))

    @precondition(lambda self: self.model.flying)
    @rule()
    def lose_the_worker(self) -> None:
        assert self.model.flying
        self.closed.append(self.model.flying)
        Delivery.objects.filter(lease_until__isnull=False).update(lease_until=Now())
        assert tasks.sweep_leases() == 1
        self.model.end_attempt("lost", in_time=False)

    @precondition(lambda self: self.closed)
    @rule(end=st.sampled_from([200, 400, 503]))
    def record_once_more(self, end: int) -> None:
        assert record(factories.ending(self.closed[-1], end)) == 0

    @rule()
    def sweep(self) -> None:
        due = self.model.state == State.DELIVERED and self.model.overdue
        assert lifecycle.time_out_overdue() == due
        assert tasks.sweep_leases() == 0
        if due:
            self.model.move(State.TIMED_OUT)

    # --- plain SQL ------------------------------------------------------------------------------

    @rule(new=st.sampled_from(State))
    def change_the_state_by_hand(self, new: State) -> None:
        old = self.model.state
        # A command gets queued together with its delivery only.
        passes = new == old or ((old, new) in TRANSITIONS and new != State.QUEUED)
        try:
            with undone(self.sql):
                change(self.sql, "commands_command", self.command.pk, state=new.value)
        except psycopg.errors.CheckViolation:
            assert not passes
        else:
            assert passes

    @rule(column=st.sampled_from(["dispatched_at", "ack_deadline", "delivery_id", "settled_at"]))
    def take_a_promise_back_by_hand(self, column: str) -> None:
        promised = getattr(fresh(self.command), column) is not None
        try:
            with undone(self.sql):
                change(self.sql, "commands_command", self.command.pk, **{column: None})
        except psycopg.errors.CheckViolation:
            assert promised
        else:
            assert not promised

    @rule(table=st.sampled_from(["commands_command", "commands_commandevent", "webhooks_attempt"]))
    def delete_by_hand(self, table: str) -> None:
        if table == "webhooks_attempt" and not self.model.attempts:
            return
        with pytest.raises(psycopg.errors.CheckViolation), undone(self.sql):
            self.sql.execute(f"DELETE FROM {table}".encode())

    # --- after each step ------------------------------------------------------------------------

    @invariant()
    def everything_is_where_the_contract_says(self) -> None:
        command = fresh(self.command)
        self.check_command(command)
        self.check_timeline()
        if command.delivery:
            self.check_delivery(command.delivery)
        else:
            assert self.model.delivery is None

    def check_command(self, command: Command) -> None:
        unsettled = self.model.state in (State.LOGGED, State.QUEUED, State.DELIVERED)
        assert command.state == self.model.state
        assert command.early_outcome == (self.model.early or "")
        assert (command.settled_at is None) == unsettled
        assert (command.delivered_at is not None) == (self.model.delivery == "delivered")

    def check_timeline(self) -> None:
        """Each transition is one line, and each line begins where the one before ended."""
        told = lines(self.command)
        moves = [(line.from_state, line.to_state) for line in told if line.to_state]
        assert [line.kind for line in told] == self.model.story
        assert moves[0] == ("", "logged")
        assert [old for old, _ in moves[1:]] == [new for _, new in moves[:-1]]
        assert set(moves[1:]) <= {(old.value, new.value) for old, new in TRANSITIONS}
        assert moves[-1][1] == self.model.state

    def check_delivery(self, delivery: Delivery) -> None:
        """It waits, or it is in flight, or it is over; and each attempt has come to an end but that."""
        made, flying = attempts(delivery), self.model.flying
        assert delivery.state == self.model.delivery
        assert delivery.attempts == len(made) == self.model.attempts <= PLANNED
        assert (delivery.next_attempt_at is not None) == self.model.waits
        assert (delivery.lease_until is not None) == (flying is not None)
        unfinished = [attempt.pk for attempt in made if attempt.finished_at is None]
        assert unfinished == ([flying.attempt_id] if flying else [])


def test_a_command_goes_where_the_contract_says_whatever_happens_to_it(scene: Scene) -> None:
    Lifecycle.scene = scene
    run_state_machine_as_test(
        Lifecycle,
        settings=settings(
            max_examples=40,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
