"""Dispatching: what it promises, and each reason for which it is refused."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from commands import datasets, issuing, lifecycle, queries
from commands.errors import DispatchRefused
from commands.models import Command, Dataset
from commands.rules.states import State
from organizations import exact_json
from organizations.clock import database_now, rfc3339
from organizations.models import AuditEntry
from tests.factories import Scene, fresh, lines, new_scene, story
from webhooks import endpoints
from webhooks.models import Delivery, Event


def refusal(scene: Scene, command: Command) -> str:
    """The code with which the dispatch is refused."""
    with pytest.raises(DispatchRefused) as refused:
        lifecycle.dispatch(scene.operator, command.pk)
    return refused.value.code


def test_a_dispatched_command_is_queued_with_a_delivery_that_is_due(scene: Scene) -> None:
    command = fresh(scene.dispatched())

    delivery = command.delivery
    assert command.state == State.QUEUED
    assert delivery
    assert delivery.state == Delivery.State.PENDING
    assert delivery.endpoint == scene.endpoint
    assert delivery.policy == "command"
    assert delivery.command_id == command.pk
    assert delivery.next_attempt_at
    assert delivery.next_attempt_at <= database_now()


def test_the_deadline_is_counted_from_the_dispatch(scene: Scene) -> None:
    before = database_now()
    command = fresh(scene.dispatched(ack_timeout_s=30))
    after = database_now()

    assert command.dispatched_at
    assert command.ack_deadline
    assert before <= command.dispatched_at <= after
    assert command.ack_deadline - command.dispatched_at == timedelta(seconds=30)


def test_the_deadline_is_300_seconds_unless_said(scene: Scene) -> None:
    command = fresh(lifecycle.dispatch(scene.operator, scene.issued().pk))

    assert command.dispatched_at
    assert command.ack_deadline == command.dispatched_at + timedelta(seconds=300)


def body_of(command: Command) -> bytes:
    assert command.delivery
    return bytes(Event.objects.get(pk=command.delivery.event_id).body)


def test_the_body_tells_the_whole_command(scene: Scene) -> None:
    command = fresh(scene.dispatched(token="t-1", name="turn", degrees=90))
    assert command.dispatched_at
    assert command.ack_deadline

    assert json.loads(body_of(command)) == {
        "type": "command.dispatch",
        "timestamp": rfc3339(command.dispatched_at),
        "command": {
            "id": str(command.pk),
            "clientToken": "t-1",
            "name": "turn",
            "parameters": {"degrees": 90},
            "experimentId": str(scene.experiment.pk),
            "datasetId": str(scene.dataset.pk),
            "issuedAt": rfc3339(command.issued_at),
            "ackDeadline": rfc3339(command.ack_deadline),
        },
    }


def test_the_body_holds_the_parameters_to_the_digit(scene: Scene) -> None:
    parameters: Any = exact_json.loads('{"x":1.10,"y":12345678901234567890123,"z":"é🛰"}')
    command = scene.dispatched(**parameters)

    assert (
        '"parameters":{"x":1.10,"y":12345678901234567890123,"z":"é🛰"}' in body_of(command).decode()
    )


def test_the_dispatch_is_a_line_with_its_transition(scene: Scene) -> None:
    command = scene.dispatched()

    line = lines(command)[-1]
    assert story(command) == ["issued", "dispatched"]
    assert (line.from_state, line.to_state) == ("logged", "queued")
    assert line.user == scene.operator.user


def unarmed(scene: Scene) -> Command:
    datasets.disarm(scene.operator, scene.dataset.pk)
    return scene.issued()


def without_endpoint(scene: Scene) -> Command:
    type(scene.endpoint).objects.filter(pk=scene.endpoint.pk).update(is_default=False)
    return scene.issued()


def with_a_disabled_endpoint(scene: Scene) -> Command:
    endpoints.disable(scene.owner, scene.endpoint.pk, "")
    return scene.issued()


def with_an_endpoint_that_stopped_receiving_commands(scene: Scene) -> Command:
    named = scene.another_endpoint()
    dataset = datasets.create_dataset(scene.owner, scene.experiment, "Named", named)
    datasets.arm(scene.owner, dataset.pk)
    type(named).objects.filter(pk=named.pk).update(receives_commands=False)
    return issued_in(scene, dataset)


def issued_in(scene: Scene, dataset: Dataset) -> Command:
    return issuing.issue(scene.operator, dataset, "in another", "hold", {}).command


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (unarmed, "dataset_unarmed"),
        (without_endpoint, "no_endpoint"),
        (with_a_disabled_endpoint, "endpoint_disabled"),
        (with_an_endpoint_that_stopped_receiving_commands, "no_endpoint"),
    ],
)
def test_a_refused_dispatch_leaves_the_command_logged_and_says_why(
    scene: Scene, make: Any, code: str
) -> None:
    command = make(scene)

    assert refusal(scene, command) == code

    command = fresh(command)
    assert command.state == State.LOGGED
    assert command.dispatch_refusal == code
    assert command.delivery is None
    assert command.ack_deadline is None
    assert story(command) == ["issued", "dispatch_refused"]
    assert lines(command)[-1].reason == code
    assert queries.dispatch_refusal(command) == code
    assert not Delivery.objects.exists()


def test_every_refusal_has_a_sentence_that_says_what_to_do(scene: Scene) -> None:
    command = unarmed(scene)

    with pytest.raises(DispatchRefused, match="Arm it, then dispatch again"):
        lifecycle.dispatch(scene.operator, command.pk)


def test_a_refused_command_can_be_dispatched_once_the_cause_is_gone(scene: Scene) -> None:
    command = unarmed(scene)
    assert refusal(scene, command) == "dataset_unarmed"
    datasets.arm(scene.operator, scene.dataset.pk)

    command = fresh(lifecycle.dispatch(scene.operator, command.pk))

    assert command.state == State.QUEUED
    assert command.dispatch_refusal == ""


@pytest.mark.parametrize("state", [s for s in State if s not in (State.LOGGED, State.RETRACTED)])
def test_a_command_is_dispatched_once(scene: Scene, state: State) -> None:
    command = scene.in_state(state)
    deadline, count = command.ack_deadline, Delivery.objects.count()

    assert refusal(scene, command) == "already_dispatched"

    command = fresh(command)
    assert command.state == state
    assert command.ack_deadline == deadline
    assert command.dispatch_refusal == ""
    assert lines(command)[-1].reason == "already_dispatched"
    assert Delivery.objects.count() == count


def test_a_retracted_command_is_not_dispatched(scene: Scene) -> None:
    command = scene.in_state(State.RETRACTED)

    assert refusal(scene, command) == "retracted"
    assert fresh(command).state == State.RETRACTED


def test_a_refusal_leaves_no_audit_entry_of_a_dispatch(scene: Scene) -> None:
    command = unarmed(scene)
    refusal(scene, command)

    assert not AuditEntry.objects.filter(act="command.dispatch").exists()


def test_commands_go_to_the_endpoint_that_the_dataset_names(scene: Scene) -> None:
    named = scene.another_endpoint()
    dataset = datasets.create_dataset(scene.owner, scene.experiment, "Named", named)
    datasets.arm(scene.owner, dataset.pk)
    command = issued_in(scene, dataset)

    command = fresh(lifecycle.dispatch(scene.operator, command.pk))

    assert command.delivery
    assert command.delivery.endpoint == named


def test_commands_never_go_to_another_organizations_endpoint(scene: Scene) -> None:
    theirs = new_scene("Another").endpoint
    Dataset.objects.filter(pk=scene.dataset.pk).update(endpoint=theirs)
    command = scene.issued()

    assert refusal(scene, command) == "no_endpoint"
