"""Operators, integrators and workers at one command at the same time, with real connections."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from uuid import UUID

import pytest

from commands import datasets, issuing, lifecycle, settling
from commands.errors import DispatchRefused, IssueRefused, ReportRefused
from commands.models import Command, CommandEvent
from commands.rules.reports import Outcome
from commands.rules.states import TRANSITIONS, State
from organizations.clock import database_now
from organizations.models import AuditEntry
from tests import factories
from tests.factories import Scene, fresh, lines, new_scene, record, story
from tests.racing import meanwhile, race, results
from webhooks.engine import tasks
from webhooks.engine.recorder import Outcome as AttemptOutcome
from webhooks.models import Delivery

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 30


@pytest.fixture
def scene() -> Scene:
    return new_scene()


def told_consistently(commands: Iterable[Command]) -> None:
    """The timeline leads from logged to the state of each command, by transitions alone."""
    for command in commands:
        moves = [(o.from_state, o.to_state) for o in lines(command) if o.to_state]
        assert moves[0] == ("", "logged")
        assert set(moves[1:]) <= {(a.value, b.value) for a, b in TRANSITIONS}
        assert [old for old, _ in moves[1:]] == [new for _, new in moves[:-1]]
        assert moves[-1][1] == fresh(command).state


def no_delivery_waits() -> bool:
    return not Delivery.objects.filter(next_attempt_at__isnull=False).exists()


# --- issue --------------------------------------------------------------------------------------


def test_twenty_that_issue_one_token_get_one_command(scene: Scene) -> None:
    issue = functools.partial(
        issuing.issue, scene.operator, scene.dataset, "t-1", "turn", {"degrees": 90}
    )

    issued = [one for one in results(race(*[issue] * 20)) if one]

    assert len(issued) == 20
    assert sum(one.created for one in issued) == 1
    assert {one.command.pk for one in issued} == {Command.objects.get().pk}
    assert story(issued[0].command) == ["issued"]
    assert AuditEntry.objects.filter(act="command.issue").count() == 1


def test_of_twenty_different_commands_with_one_token_one_is_issued(scene: Scene) -> None:
    def issue(degrees: int) -> UUID:
        issued = issuing.issue(scene.operator, scene.dataset, "t-1", "turn", {"degrees": degrees})
        return issued.command.pk

    found = results(race(*[functools.partial(issue, n) for n in range(20)]), IssueRefused)

    assert Counter(found) == {Command.objects.get().pk: 1, None: 19}


# --- dispatch and retract -----------------------------------------------------------------------


def test_twenty_that_dispatch_a_command_send_it_once(scene: Scene) -> None:
    command = scene.issued()
    dispatch = functools.partial(lifecycle.dispatch, scene.operator, command.pk)

    found = results(race(*[dispatch] * 20), DispatchRefused)

    assert sum(one is not None for one in found) == 1
    assert Delivery.objects.count() == 1
    assert Counter(story(command)) == {"issued": 1, "dispatched": 1, "dispatch_refused": 19}


def test_a_retraction_that_races_a_dispatch_always_stops_it(scene: Scene) -> None:
    commands = [scene.issued() for _ in range(ROUNDS)]
    for command in commands:
        dispatch = functools.partial(lifecycle.dispatch, scene.operator, command.pk)
        retract = functools.partial(lifecycle.retract, scene.operator, command.pk)

        results(race(dispatch, retract), DispatchRefused)

    assert {fresh(command).state for command in commands} == {State.RETRACTED}
    assert no_delivery_waits()
    told_consistently(commands)


def test_a_retraction_that_waits_for_a_dispatch_cancels_its_delivery(scene: Scene) -> None:
    """The command has no delivery when the retraction first looks, and one when it has the lock."""
    command = scene.issued()

    with meanwhile(lambda: lifecycle.retract(scene.operator, command.pk)) as retracted:
        lifecycle.dispatch(scene.operator, command.pk)

    assert retracted.result().command.state == State.RETRACTED
    assert factories.delivery_of(fresh(command)).state == Delivery.State.CANCELLED
    told_consistently([command])


def test_a_dispatch_that_waits_for_a_retraction_is_refused(scene: Scene) -> None:
    command = scene.issued()

    with meanwhile(lambda: lifecycle.dispatch(scene.operator, command.pk)) as dispatched:
        lifecycle.retract(scene.operator, command.pk)

    error = dispatched.exception()
    assert isinstance(error, DispatchRefused)
    assert error.code == "retracted"
    assert not Delivery.objects.exists()


def test_two_retractions_at_once_are_one(scene: Scene) -> None:
    for _ in range(5):
        command = scene.dispatched()
        retract = functools.partial(lifecycle.retract, scene.operator, command.pk)

        results(race(*[retract] * 4))

        assert story(command).count("retracted") == 1


# --- retract and record -------------------------------------------------------------------------


# Fewer rounds of failures than would disable the endpoint.
@pytest.mark.parametrize(("status", "rounds"), [(200, ROUNDS), (503, 15), (400, 15)])
def test_a_retraction_that_races_the_answer_ends_retracted(
    scene: Scene, status: int, rounds: int
) -> None:
    commands = []
    for n in range(rounds):
        command, attempt = scene.on_the_wire()
        answer = functools.partial(record, factories.answer(attempt, status))
        retract = functools.partial(lifecycle.retract, scene.operator, command.pk)
        runners: list[Callable[[], object]] = [answer, retract]

        results(race(*(runners if n % 2 else runners[::-1])))

        commands.append(command)

    assert {fresh(command).state for command in commands} == {State.RETRACTED}
    assert {a.status_code for c in commands for a in factories.attempts(c)} == {status}
    assert no_delivery_waits()
    told_consistently(commands)


def retract(scene: Scene, command: Command, attempt: AttemptOutcome) -> object:
    return lifecycle.retract(scene.operator, command.pk)


def answer(scene: Scene, command: Command, attempt: AttemptOutcome) -> object:
    return record(attempt)


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        (retract, answer, ["retracted"]),
        (answer, retract, ["delivered", "retracted"]),
    ],
)
def test_of_a_retraction_and_an_answer_the_second_sees_the_first(
    scene: Scene, first: Callable[..., object], second: Callable[..., object], told: list[str]
) -> None:
    command, attempt = scene.on_the_wire()
    outcome = factories.answer(attempt, 200)

    with meanwhile(lambda: second(scene, command, outcome)) as done:
        first(scene, command, outcome)

    done.result()
    assert fresh(command).state == State.RETRACTED
    assert story(command)[2:] == told
    assert factories.attempts(command)[0].verdict == "delivered"
    told_consistently([command])


# --- report and record --------------------------------------------------------------------------


def test_a_report_that_races_the_answer_is_never_lost(scene: Scene) -> None:
    commands = []
    for n in range(ROUNDS):
        command, attempt = scene.on_the_wire()
        delivered = functools.partial(record, factories.answer(attempt, 200))
        report = functools.partial(
            lifecycle.acknowledge, scene.operator, command.pk, Outcome.SUCCESS
        )
        runners: list[Callable[[], object]] = [delivered, report]

        results(race(*(runners if n % 2 else runners[::-1])))

        commands.append(command)

    assert {fresh(command).state for command in commands} == {State.ACKED}
    told_consistently(commands)


def test_a_report_that_waits_for_the_answer_to_be_recorded_is_applied(scene: Scene) -> None:
    command, attempt = scene.on_the_wire()

    with meanwhile(
        lambda: lifecycle.acknowledge(scene.operator, command.pk, Outcome.REJECTION)
    ) as reported:
        record(factories.answer(attempt, 200))

    assert reported.result().reception == "applied"
    assert story(command)[2:] == ["delivered", "nacked"]


def test_an_answer_that_waits_for_an_early_report_applies_it(scene: Scene) -> None:
    command, attempt = scene.on_the_wire()

    with meanwhile(lambda: record(factories.answer(attempt, 200))) as recorded:
        lifecycle.acknowledge(scene.operator, command.pk, Outcome.REJECTION)

    assert recorded.result() == 1
    assert story(command)[2:] == ["report_early", "delivered", "nacked"]


def test_contradicting_reports_at_once_leave_one_that_stands_and_one_on_record(
    scene: Scene,
) -> None:
    for _ in range(8):
        command = scene.delivered()
        reports = [
            functools.partial(lifecycle.acknowledge, scene.operator, command.pk, outcome)
            for outcome in Outcome
        ]

        found = results(race(*reports), ReportRefused)

        assert sum(one is None for one in found) == 1
        assert Counter(story(command))["report_refused"] == 1
        told_consistently([command])


def test_sweeps_and_late_reports_at_once_time_a_command_out_once(scene: Scene) -> None:
    for _ in range(8):
        command = scene.overdue()
        report = functools.partial(
            lifecycle.acknowledge, scene.operator, command.pk, Outcome.SUCCESS
        )

        results(race(settling.time_out_overdue, report, settling.time_out_overdue), ReportRefused)

        assert fresh(command).state == State.TIMED_OUT
        assert Counter(story(command))["timed_out"] == 1
        assert Counter(story(command))["report_refused"] == 1


# --- arming -------------------------------------------------------------------------------------


def test_after_a_disarming_returned_no_dispatch_succeeds(scene: Scene) -> None:
    def disarm() -> datetime:
        datasets.disarm(scene.operator, scene.dataset.pk)
        return database_now()

    def dispatch(command: Command) -> datetime | None:
        return lifecycle.dispatch(scene.operator, command.pk).dispatched_at

    for _ in range(6):
        datasets.arm(scene.operator, scene.dataset.pk)
        commands = [scene.issued() for _ in range(6)]
        dispatches = [functools.partial(dispatch, command) for command in commands]

        *dispatched, disarmed = results(race(*dispatches, disarm), DispatchRefused)

        assert disarmed
        assert all(at < disarmed for at in dispatched if at)
        assert {fresh(command).state for command in commands} <= {State.LOGGED, State.QUEUED}


def test_a_disarming_waits_for_the_dispatch_under_way(scene: Scene) -> None:
    command = scene.issued()

    with meanwhile(lambda: datasets.disarm(scene.operator, scene.dataset.pk)) as disarmed:
        lifecycle.dispatch(scene.operator, command.pk)

    assert not disarmed.result().armed
    assert fresh(command).state == State.QUEUED


def test_a_dispatch_waits_for_the_disarming_under_way(scene: Scene) -> None:
    command = scene.issued()

    with meanwhile(lambda: lifecycle.dispatch(scene.operator, command.pk)) as dispatched:
        datasets.disarm(scene.operator, scene.dataset.pk)

    assert isinstance(dispatched.exception(), DispatchRefused)
    assert fresh(command).dispatch_refusal == "dataset_unarmed"


# --- everything at once -------------------------------------------------------------------------


def test_whatever_happens_at_once_nothing_deadlocks_and_every_story_is_legal(
    scene: Scene,
) -> None:
    commands = []
    for n in range(12):
        flying = [scene.on_the_wire() for _ in range(3)]
        logged = scene.issued()
        commands += [logged, *(command for command, _ in flying)]
        outcomes = [
            factories.answer(a, (200, 503, 400)[(n + i) % 3]) for i, (_, a) in enumerate(flying)
        ]
        acts: list[Callable[[], object]] = [
            functools.partial(record, *outcomes),
            functools.partial(lifecycle.dispatch, scene.operator, logged.pk),
            functools.partial(lifecycle.retract, scene.operator, flying[n % 3][0].pk),
            functools.partial(
                lifecycle.acknowledge, scene.operator, flying[0][0].pk, Outcome.SUCCESS
            ),
            tasks.sweep_leases,
            settling.time_out_overdue,
            functools.partial(datasets.disarm, scene.operator, scene.dataset.pk),
        ]

        results(race(*acts[n % 7 :], *acts[: n % 7]), DispatchRefused, ReportRefused)

        datasets.arm(scene.operator, scene.dataset.pk)

    told_consistently(commands)
    moves = CommandEvent.objects.exclude(to_state="").values_list("command", "to_state")
    assert max(Counter(moves).values()) == 1
