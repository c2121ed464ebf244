"""Which commands need a person now, and how many stand where."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from commands import datasets, issuing, lifecycle, overview
from commands.errors import DispatchRefused
from commands.models import Command
from commands.overview import Waiting
from commands.rules.reports import Outcome
from commands.rules.states import State
from organizations.clock import database_now
from tests.factories import Scene, fresh, new_scene

pytestmark = pytest.mark.django_db


def waiting(scene: Scene, later: timedelta = timedelta()) -> Waiting:
    return overview.needing_a_person(scene.organization, database_now() + later)


def named(some: overview.Some) -> list[UUID]:
    return [line.pk for line in some.lines]


def refused(scene: Scene) -> Command:
    """A command whose dispatch was refused, because nothing is armed."""
    command = scene.issued()
    datasets.disarm(scene.operator, scene.dataset.pk)
    with pytest.raises(DispatchRefused):
        lifecycle.dispatch(scene.operator, command.pk)
    return command


# --- timed out ----------------------------------------------------------------------------------


def test_a_timed_out_command_needs_a_person_for_a_day(scene: Scene) -> None:
    command = scene.in_state(State.TIMED_OUT)
    [line] = waiting(scene).timed_out.lines
    assert (line.pk, line.name, line.dataset) == (command.pk, "hold", "Dataset")
    assert line.at == command.settled_at
    assert named(waiting(scene, timedelta(hours=23, minutes=59)).timed_out) == [command.pk]
    assert not named(waiting(scene, timedelta(hours=24)).timed_out)


def test_one_that_was_reissued_or_retracted_is_taken_care_of(scene: Scene) -> None:
    reissued, retracted = scene.in_state(State.TIMED_OUT), scene.in_state(State.TIMED_OUT)
    issuing.reissue(scene.operator, reissued.pk, "once-more")
    lifecycle.retract(scene.operator, retracted.pk)
    assert not waiting(scene).timed_out.total


def test_the_last_that_timed_out_comes_first_and_the_others_are_counted(scene: Scene) -> None:
    commands = [scene.in_state(State.TIMED_OUT) for _ in range(overview.SHOWN + 2)]
    some = waiting(scene).timed_out
    assert named(some) == [command.pk for command in reversed(commands[2:])]
    assert some.total == len(commands)
    assert not some.at_the_bound


def test_counting_ends_at_a_bound_and_says_so(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "REACH", 2)
    for _ in range(3):
        scene.in_state(State.TIMED_OUT)
    some = waiting(scene).timed_out
    assert some.total == 2
    assert some.at_the_bound


# --- refused ------------------------------------------------------------------------------------


def test_a_refused_dispatch_needs_a_person_until_it_is_dispatched_or_retracted(
    scene: Scene,
) -> None:
    first, second = refused(scene), refused(scene)
    some = waiting(scene).refused
    assert named(some) == [second.pk, first.pk]
    assert some.lines[0].reason == "dataset_unarmed"
    datasets.arm(scene.operator, scene.dataset.pk)
    lifecycle.dispatch(scene.operator, first.pk)
    lifecycle.retract(scene.operator, second.pk)
    assert not waiting(scene).refused.total


def test_a_command_that_nobody_dispatched_yet_does_not(scene: Scene) -> None:
    scene.issued()
    assert not waiting(scene).refused.total


# --- deadlines ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timeout_s", "left_s", "near"),
    [
        (300, 101, False),
        (300, 99, True),
        (30, 11, False),
        (30, 9, True),
        (3600, 121, False),
        (3600, 119, True),
        (300, -1, True),
    ],
)
def test_a_deadline_is_near_in_the_last_third_of_its_time_and_two_minutes_at_most(
    scene: Scene, timeout_s: int, left_s: int, near: bool
) -> None:
    command = scene.delivered(ack_timeout_s=timeout_s)
    assert command.ack_deadline
    now = command.ack_deadline - timedelta(seconds=left_s)
    some = overview.needing_a_person(scene.organization, now).deadlines
    assert named(some) == ([command.pk] if near else [])
    assert all(line.at == command.ack_deadline for line in some.lines)


def test_a_command_that_was_reported_or_is_not_delivered_has_no_deadline_to_watch(
    scene: Scene,
) -> None:
    reported = scene.delivered()
    lifecycle.acknowledge(scene.operator, reported.pk, Outcome.SUCCESS)
    scene.dispatched()
    assert not waiting(scene, timedelta(seconds=299)).deadlines.total


def test_the_nearest_deadline_comes_first_also_behind_many_of_another_organization(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "REACH", 3)
    other = new_scene()
    for _ in range(4):
        other.delivered(ack_timeout_s=290)
    later, sooner = scene.delivered(ack_timeout_s=310), scene.delivered(ack_timeout_s=300)
    some = waiting(scene, timedelta(seconds=280)).deadlines
    assert named(some) == [sooner.pk, later.pk]


def test_nothing_of_another_organization_needs_anybody_here(scene: Scene) -> None:
    other = new_scene()
    other.in_state(State.TIMED_OUT)
    other.delivered()
    refused(other)
    found = waiting(scene, timedelta(seconds=299))
    assert [some.total for some in (found.timed_out, found.refused, found.deadlines)] == [0, 0, 0]


# --- counts -------------------------------------------------------------------------------------


def test_each_command_is_counted_in_its_state(scene: Scene) -> None:
    for state in State:
        scene.in_state(state)
    scene.issued()
    new_scene().issued()
    counts = overview.counts(scene.organization, database_now())
    assert counts == dict.fromkeys(State, 1) | {State.LOGGED: 2}


def test_settled_commands_are_counted_for_a_day_and_others_for_ever(scene: Scene) -> None:
    for state in State:
        scene.in_state(state)
    tomorrow = database_now() + timedelta(hours=24, seconds=1)
    counts = overview.counts(scene.organization, tomorrow)
    assert {state for state in State if counts[state]} == set(overview.UNDER_WAY)


def test_counting_a_state_ends_above_its_bound(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "COUNTED_TO", 2)
    for _ in range(5):
        scene.issued()
    assert overview.counts(scene.organization, database_now())[State.LOGGED] == 3


def test_a_large_number_is_kept_for_a_while_and_a_small_one_is_not(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "LARGE", 2)
    for _ in range(3):
        scene.issued()
    overview.counts(scene.organization, database_now())
    lifecycle.retract(scene.operator, fresh(scene.issued()).pk)
    scene.issued()
    counts = overview.counts(scene.organization, database_now())
    assert counts[State.LOGGED] == 3
    assert counts[State.RETRACTED] == 1
