"""Who may do what to commands and datasets, and that each act is on record."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest
from django.db.models import Model

from commands import datasets, issuing, lifecycle
from commands.models import Command, CommandEvent
from commands.rules.reports import Outcome
from organizations.actors import Actor, NotPermitted
from organizations.models import AuditEntry
from tests.factories import Scene

OPERATORS = {"owner", "operator"}
OWNERS = {"owner"}


def issue(scene: Scene, actor: Actor) -> Model:
    return issuing.issue(actor, scene.dataset, "t-1", "hold", {}).command


def reissue(scene: Scene, actor: Actor) -> Model:
    return issuing.reissue(actor, scene.failed().pk, "t-2").command


def dispatch(scene: Scene, actor: Actor) -> Model:
    return lifecycle.dispatch(actor, scene.issued().pk)


def acknowledge(scene: Scene, actor: Actor) -> Model:
    return lifecycle.acknowledge(actor, scene.delivered().pk, Outcome.SUCCESS).command


def retract(scene: Scene, actor: Actor) -> Model:
    return lifecycle.retract(actor, scene.delivered().pk).command


def arm(scene: Scene, actor: Actor) -> Model:
    datasets.disarm(scene.owner, scene.dataset.pk)
    return datasets.arm(actor, scene.dataset.pk)


def disarm(scene: Scene, actor: Actor) -> Model:
    return datasets.disarm(actor, scene.dataset.pk)


def create_experiment(scene: Scene, actor: Actor) -> Model:
    return datasets.create_experiment(actor, "New")


def create_dataset(scene: Scene, actor: Actor) -> Model:
    return datasets.create_dataset(actor, scene.experiment, "New")


Act = Callable[[Scene, Actor], Model]
# The act, its permission, who has it, and its name in the audit trail.
ACTS: list[tuple[Act, str, set[str], str]] = [
    (issue, "commands:issue", OPERATORS, "command.issue"),
    (reissue, "commands:issue", OPERATORS, "command.issue"),
    (dispatch, "commands:dispatch", OPERATORS, "command.dispatch"),
    (acknowledge, "commands:ack", OPERATORS, "command.ack"),
    (retract, "commands:retract", OPERATORS, "command.retract"),
    (arm, "datasets:arm", OPERATORS, "dataset.arm"),
    (disarm, "datasets:arm", OPERATORS, "dataset.disarm"),
    (create_experiment, "datasets:write", OWNERS, "experiment.create"),
    (create_dataset, "datasets:write", OWNERS, "dataset.create"),
]
TABLE = [
    (act, permission, role)
    for act, permission, _, _ in ACTS
    for role in ("owner", "operator", "viewer")
]
ALLOWED = {act: roles for act, _, roles, _ in ACTS}


@pytest.mark.parametrize(("act", "permission", "role"), TABLE)
def test_an_act_needs_its_permission(scene: Scene, act: Act, permission: str, role: str) -> None:
    actor = scene.provisioned.actor(role)

    if role in ALLOWED[act]:
        act(scene, actor)
    else:
        with pytest.raises(NotPermitted) as refusal:
            act(scene, actor)
        assert refusal.value.permission == permission


@pytest.mark.parametrize(
    ("act", "permission"), [(act, permission) for act, permission, _, _ in ACTS]
)
def test_a_key_does_not_reach_past_its_scopes(scene: Scene, act: Act, permission: str) -> None:
    narrowed = dataclasses.replace(scene.owner, permissions=scene.owner.permissions - {permission})

    with pytest.raises(NotPermitted):
        act(scene, narrowed)


@pytest.mark.parametrize("act", [act for act, _, _, _ in ACTS])
def test_a_refused_act_leaves_no_trace(scene: Scene, act: Act) -> None:
    def trace() -> tuple[int, ...]:
        return (
            AuditEntry.objects.filter(user=scene.viewer.user).count(),
            CommandEvent.objects.filter(user=scene.viewer.user).count(),
            Command.objects.filter(issued_by=scene.viewer.user).count(),
        )

    with pytest.raises(NotPermitted):
        act(scene, scene.viewer)

    assert trace() == (0, 0, 0)


@pytest.mark.parametrize(("act", "name"), [(act, name) for act, _, _, name in ACTS])
def test_each_act_is_audited_with_who_from_where_and_how(scene: Scene, act: Act, name: str) -> None:
    actor = dataclasses.replace(scene.owner, via="console", address="192.0.2.7")

    target = act(scene, actor)

    entry = AuditEntry.objects.latest("pk")
    assert entry.act == name
    assert entry.target_id == str(target.pk)
    assert (entry.user, entry.via, entry.address) == (actor.user, "console", "192.0.2.7")
    assert entry.organization == scene.organization
    assert entry.after
