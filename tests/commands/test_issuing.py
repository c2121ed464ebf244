"""Issuing: once for each client token, exact to the digit; and reissuing what came to nothing."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from commands import datasets, issuing, lifecycle
from commands.errors import IssueRefused, ReissueRefused
from commands.models import Command, CommandEvent
from commands.rules.states import State
from organizations import exact_json
from organizations.exact_json import NotExactJson
from organizations.models import AuditEntry
from tests.factories import Scene, fresh, lines, new_scene, story

REISSUABLE = ["failed", "timed_out", "nacked", "retracted"]
MAY_STILL_HAPPEN = ["logged", "queued", "delivered", "acked"]


def test_an_issued_command_is_logged_and_nothing_is_sent(scene: Scene) -> None:
    issued = issuing.issue(scene.operator, scene.dataset, "t-1", "turn", {"degrees": 90})

    command = fresh(issued.command)
    assert issued.created
    assert command.state == State.LOGGED
    assert command.organization == scene.organization
    assert command.dataset == scene.dataset
    assert command.issued_by == scene.operator.user
    assert command.parameters_value == {"degrees": 90}
    assert command.delivery is None
    assert command.ack_deadline is None


def test_the_issue_is_the_first_line_of_the_timeline(scene: Scene) -> None:
    [line] = lines(scene.issued())

    assert line.kind == "issued"
    assert (line.from_state, line.to_state) == ("", "logged")
    assert (line.user, line.via) == (scene.operator.user, "cli")


def test_the_same_token_with_the_same_content_is_the_same_command(scene: Scene) -> None:
    first = issuing.issue(scene.operator, scene.dataset, "t-1", "turn", {"degrees": 90})
    again = issuing.issue(scene.owner, scene.dataset, "t-1", "turn", {"degrees": 90})

    assert (first.created, again.created) == (True, False)
    assert again.command.pk == first.command.pk
    assert story(first.command) == ["issued"]
    assert AuditEntry.objects.filter(act="command.issue").count() == 1


def test_a_replay_finds_the_command_wherever_it_has_got_to(scene: Scene) -> None:
    command = scene.delivered(token="t-1", name="turn", degrees=90)

    again = issuing.issue(scene.operator, scene.dataset, "t-1", "turn", {"degrees": 90})

    assert again.command.pk == command.pk
    assert again.command.state == State.DELIVERED


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("turn back", {"degrees": 90}),
        ("turn", {"degrees": 91}),
        ("turn", {"degrees": Decimal("90.0")}),
        ("turn", {"degrees": "90"}),
        ("turn", {}),
        ("turn", {"degrees": 90, "fast": None}),
    ],
)
def test_the_same_token_with_other_content_is_refused(
    scene: Scene, name: str, parameters: dict[str, Any]
) -> None:
    first = scene.issued(token="t-1", name="turn", degrees=90)

    with pytest.raises(IssueRefused) as refusal:
        issuing.issue(scene.operator, scene.dataset, "t-1", name, parameters)

    assert refusal.value.code == "client_token_conflict"
    assert refusal.value.command.pk == first.pk
    assert Command.objects.count() == 1


def test_the_same_token_for_another_dataset_is_refused(scene: Scene) -> None:
    other = datasets.create_dataset(scene.owner, scene.experiment, "Another dataset")
    scene.issued(token="t-1")

    with pytest.raises(IssueRefused, match="other content"):
        issuing.issue(scene.operator, other, "t-1", "hold", {})


def test_another_organization_may_use_the_same_token(scene: Scene) -> None:
    theirs = new_scene("Another").issued(token="t-1")

    assert scene.issued(token="t-1").pk != theirs.pk


def test_a_command_is_never_issued_into_another_organizations_dataset(scene: Scene) -> None:
    theirs = new_scene("Another").dataset

    with pytest.raises(type(theirs).DoesNotExist):
        issuing.issue(scene.operator, theirs, "t-1", "hold", {})

    assert not Command.objects.exists()


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1.10}',
        '{"big":123456789012345678901234567890}',
        '{"tiny":1E-400,"huge":1E+400}',
        '{"b":1,"a":2}',
        '{"name":"café 🛰","quote":"\\"</script>"}',
        '{"nested":[{"x":[]},null,true,-0.0]}',
    ],
)
def test_parameters_are_kept_to_the_letter(scene: Scene, text: str) -> None:
    issued = issuing.issue(scene.operator, scene.dataset, "t-1", "turn", exact_json.loads(text))

    assert fresh(issued.command).parameters == text


@pytest.mark.parametrize("value", [Decimal("NaN"), Decimal("Infinity"), float("inf"), "\ud800"])
def test_what_json_cannot_say_is_refused_before_anything_is_made(scene: Scene, value: Any) -> None:
    with pytest.raises((NotExactJson, ValueError)):
        issuing.issue(scene.operator, scene.dataset, "t-1", "turn", {"x": value})

    assert not Command.objects.exists()


# --- reissue ------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", REISSUABLE)
def test_what_came_to_nothing_is_reissued_as_a_new_command(scene: Scene, state: str) -> None:
    original = scene.in_state(state)

    reissued = issuing.reissue(scene.operator, original.pk, "second try")

    command = fresh(reissued.command)
    assert reissued.created
    assert command.pk != original.pk
    assert command.client_token == "second try"
    assert command.reissue_of_id == original.pk
    assert command.state == State.LOGGED
    assert (command.dataset, command.name, command.parameters) == (
        original.dataset,
        original.name,
        original.parameters,
    )
    assert fresh(original).state == state


def test_a_reissue_is_told_on_both_timelines(scene: Scene) -> None:
    original = scene.failed()

    command = issuing.reissue(scene.operator, original.pk, "second try").command

    assert story(command) == ["issued"]
    assert story(original)[-1] == "reissued"
    assert str(command.pk) in lines(original)[-1].detail


@pytest.mark.parametrize("state", MAY_STILL_HAPPEN)
def test_what_may_still_be_carried_out_is_not_reissued(scene: Scene, state: str) -> None:
    original = scene.in_state(state)

    with pytest.raises(ReissueRefused) as refusal:
        issuing.reissue(scene.operator, original.pk, "second try")

    assert refusal.value.code == "not_reissuable"
    assert Command.objects.count() == 1


def test_the_same_reissue_again_finds_the_command_it_made(scene: Scene) -> None:
    original = scene.failed()

    first = issuing.reissue(scene.operator, original.pk, "second try")
    again = issuing.reissue(scene.operator, original.pk, "second try")

    assert (first.created, again.created) == (True, False)
    assert again.command.pk == first.command.pk
    assert CommandEvent.objects.filter(kind="reissued").count() == 1


def test_a_reissue_needs_a_token_of_its_own(scene: Scene) -> None:
    original, unrelated = scene.failed(token="t-1"), scene.issued(token="t-2")

    for token in (original.client_token, unrelated.client_token):
        with pytest.raises(IssueRefused) as refusal:
            issuing.reissue(scene.operator, original.pk, token)
        assert refusal.value.code == "client_token_conflict"


def test_a_reissue_can_be_reissued(scene: Scene) -> None:
    second = issuing.reissue(scene.operator, scene.failed().pk, "second try").command
    lifecycle.retract(scene.operator, second.pk)

    third = issuing.reissue(scene.operator, second.pk, "third try").command

    assert third.reissue_of_id == second.pk


def test_nothing_of_another_organization_is_reissued(scene: Scene) -> None:
    theirs = new_scene("Another").failed()

    for unknown in (theirs.pk, uuid4()):
        with pytest.raises(Command.DoesNotExist):
            issuing.reissue(scene.operator, unknown, "second try")
