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
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from commands import datasets, lifecycle, settling
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
# When an attempt ends, as seen from the command's deadline.
MOMENTS = st.sampled_from(["now", "in time", "late"])
SETTLED_BY = {Outcome.SUCCESS: State.ACKED, Outcome.REJECTION: State.NACKED}


@dataclass
class Model:
    """What the contract says of one command."""

    state: State = State.LOGGED
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

    def refusal(self, armed: bool) -> str | None:
        """Why a dispatch is refused."""
        if self.state != State.LOGGED:
            return "retracted" if self.state == State.RETRACTED else "already_dispatched"
        if not armed:
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

    def end_attempt(self, end: int | str, late: bool) -> None:
        """The attempt on the wire came to this."""
        self.flying = None
        if self.delivery == "cancelled":
            return
        if end == 200:
            self.delivery = "delivered"
            self.move(State.DELIVERED)
            if self.early:
                self.move(SETTLED_BY[self.early])
            elif late:
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
        self.tried_by_hand: State | None = None
        self.sql = plain_connection()

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.example.__exit__(None, None, None)

    # --- operators and owners -------------------------------------------------------------------

    # Most lives get going; the rest find out about refusals.
    @initialize(sent=st.sampled_from([True, True, True, False]), overdue=st.booleans())
    def begin(self, sent: bool, overdue: bool) -> None:
        if sent:
            self.dispatch(overdue, armed=True)

    @precondition(lambda self: self.model.state in (State.LOGGED, State.QUEUED))
    @rule()
    def disable_or_enable_the_endpoint(self) -> None:
        self.model.enabled = not self.model.enabled
        if self.model.enabled:
            endpoints.enable(self.scene.owner, self.scene.endpoint.pk)
            return
        endpoints.disable(self.scene.owner, self.scene.endpoint.pk, "")
        if self.model.waits:
            self.model.fail()

    # A second refusal on the timeline of a command teaches nothing new.
    @precondition(lambda self: self.model.story[-1] != "dispatch_refused")
    @rule(overdue=st.booleans(), armed=st.booleans())
    def dispatch(self, overdue: bool, armed: bool) -> None:
        operator, dataset = self.scene.operator, self.scene.dataset.pk
        datasets.arm(operator, dataset) if armed else datasets.disarm(operator, dataset)
        refusal, timeout_s = self.model.refusal(armed), 0 if overdue else 300

        dispatch = functools.partial(lifecycle.dispatch, operator, self.command.pk, timeout_s)
        assert refusal_of(dispatch) == refusal

        self.model.story.append("dispatch_refused" if refusal else "dispatched")
        if not refusal:
            self.model.state, self.model.delivery = State.QUEUED, "pending"
            self.model.overdue = overdue

    @precondition(lambda self: self.model.state != State.RETRACTED)
    @rule()
    def retract(self) -> None:
        retracted = lifecycle.retract(self.scene.operator, self.command.pk, "no longer wanted")
        assert retracted.attempt_on_the_wire == (self.model.flying is not None)
        if self.model.delivery == "pending":
            self.model.delivery = "cancelled"
        self.model.move(State.RETRACTED)

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
    @rule(end=st.sampled_from([200, 400, 503, "timeout", "lost"]), when=MOMENTS)
    def record(self, end: int | str, when: str) -> None:
        attempt = self.model.flying
        assert attempt
        outcome = self._ended(factories.ending(attempt, end), when)

        assert record(outcome) == 1

        assert record(outcome) == 0, "an attempt is recorded once"
        late = when == "late" or (when == "now" and self.model.overdue)
        self.model.end_attempt(end, late)

    @precondition(lambda self: self.model.flying)
    @rule()
    def lose_the_worker(self) -> None:
        Delivery.objects.filter(lease_until__isnull=False).update(lease_until=Now())
        assert tasks.sweep_leases() == 1
        self.model.end_attempt("lost", late=False)

    @precondition(lambda self: self.model.waits)
    @rule(when=MOMENTS)
    def deliver(self, when: str) -> None:
        self.claim()
        self.record(200, when)

    @precondition(lambda self: self.model.waits)
    @rule(attempts=st.integers(1, PLANNED))
    def fail_again_and_again(self, attempts: int) -> None:
        for _ in range(min(attempts, PLANNED - self.model.attempts)):
            self.claim()
            self.record(503, "now")

    def _ended(self, outcome: AttemptOutcome, when: str) -> AttemptOutcome:
        """The outcome, ended now, or just before the deadline, or just after it."""
        deadline = fresh(self.command).ack_deadline
        assert deadline
        match when:
            case "in time":
                last_moment = deadline - timedelta(microseconds=1)
                return replace(outcome, finished_at=min(outcome.finished_at, last_moment))
            case "late":
                return replace(outcome, finished_at=max(outcome.finished_at, deadline))
            case _:
                return outcome

    @precondition(lambda self: self.model.state == State.DELIVERED)
    @rule()
    def sweep(self) -> None:
        assert settling.time_out_overdue() == self.model.overdue
        if self.model.overdue:
            self.model.move(State.TIMED_OUT)

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
        if self.tried_by_hand != self.model.state:
            self.tried_by_hand = self.model.state
            self.check_plain_sql(command)

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

    def check_plain_sql(self, command: Command) -> None:
        """Where the contract leads on, and nowhere else; and no promise is taken back."""
        old = self.model.state
        onward = {new for new in State if self._passes(state=new.value)} - {old}
        # A command gets queued together with its delivery only.
        assert onward == {b for a, b in TRANSITIONS if a == old} - {State.QUEUED}
        for column in ("dispatched_at", "ack_deadline", "delivery_id", "settled_at"):
            assert self._passes(**{column: None}) == (getattr(command, column) is None)
        with pytest.raises(psycopg.errors.CheckViolation), undone(self.sql):
            self.sql.execute("DELETE FROM commands_command")

    def _passes(self, **columns: object) -> bool:
        """Whether the database lets this change of the command pass; it is undone."""
        try:
            with undone(self.sql):
                change(self.sql, "commands_command", self.command.pk, **columns)
        except psycopg.errors.CheckViolation:
            return False
        return True


def test_a_command_goes_where_the_contract_says_whatever_happens_to_it(scene: Scene) -> None:
    Lifecycle.scene = scene
    run_state_machine_as_test(
        Lifecycle,
        settings=settings(
            max_examples=50,
            stateful_step_count=12,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
