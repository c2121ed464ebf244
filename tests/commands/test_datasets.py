"""Experiments and datasets: made by owners, armed and disarmed by operators."""

from __future__ import annotations

import pytest

from commands import datasets, lifecycle
from commands.errors import DispatchRefused
from commands.models import Dataset, Experiment
from commands.rules.states import State
from organizations.models import AuditEntry
from tests.factories import Scene, fresh, new_scene
from webhooks.models import Endpoint


def test_a_new_dataset_is_not_armed(scene: Scene) -> None:
    dataset = datasets.create_dataset(scene.owner, scene.experiment, "New")

    dataset.refresh_from_db()
    assert (dataset.armed, dataset.armed_by, dataset.armed_at) == (False, None, None)
    assert dataset.organization == scene.organization


def test_arming_says_who_and_when(scene: Scene) -> None:
    dataset = datasets.create_dataset(scene.owner, scene.experiment, "New")

    armed = datasets.arm(scene.operator, dataset.pk)

    assert armed.armed
    assert armed.armed_by == scene.operator.user
    assert armed.armed_at


def test_arming_again_changes_nothing(scene: Scene) -> None:
    armed_at = scene.dataset.armed_at
    acts = AuditEntry.objects.filter(act="dataset.arm").count()

    again = datasets.arm(scene.operator, scene.dataset.pk)

    assert again.armed_at == armed_at
    assert again.armed_by == scene.owner.user
    assert AuditEntry.objects.filter(act="dataset.arm").count() == acts


def test_disarming_forgets_who_armed_it(scene: Scene) -> None:
    dataset = datasets.disarm(scene.operator, scene.dataset.pk)

    assert (dataset.armed, dataset.armed_by, dataset.armed_at) == (False, None, None)


def test_arming_and_disarming_are_audited_with_before_and_after(scene: Scene) -> None:
    datasets.disarm(scene.operator, scene.dataset.pk)

    entry = AuditEntry.objects.latest("pk")
    assert entry.act == "dataset.disarm"
    assert (entry.target_type, entry.target_id) == ("dataset", str(scene.dataset.pk))
    assert (entry.before, entry.after) == ({"armed": True}, {"armed": False})
    assert entry.user == scene.operator.user


def test_disarming_stops_dispatches_and_not_what_is_queued(scene: Scene) -> None:
    queued, logged = scene.dispatched(), scene.issued()

    datasets.disarm(scene.operator, scene.dataset.pk)

    assert fresh(queued).state == State.QUEUED
    with pytest.raises(DispatchRefused):
        lifecycle.dispatch(scene.operator, logged.pk)


def test_making_is_audited(scene: Scene) -> None:
    experiment = datasets.create_experiment(scene.owner, "Second")
    dataset = datasets.create_dataset(scene.owner, experiment, "New")

    acts = AuditEntry.objects.order_by("-pk").values_list("act", "target_id", "after")[:2]
    assert list(acts) == [
        ("dataset.create", str(dataset.pk), {"name": "New"}),
        ("experiment.create", str(experiment.pk), {"name": "Second"}),
    ]


def test_nothing_of_another_organization_is_taken(scene: Scene) -> None:
    theirs = new_scene("Another")

    with pytest.raises(Experiment.DoesNotExist):
        datasets.create_dataset(scene.owner, theirs.experiment, "New")
    with pytest.raises(Endpoint.DoesNotExist):
        datasets.create_dataset(scene.owner, scene.experiment, "New", theirs.endpoint)
    for switch in (datasets.arm, datasets.disarm):
        with pytest.raises(Dataset.DoesNotExist):
            switch(scene.operator, theirs.dataset.pk)
    theirs.dataset.refresh_from_db()
    assert theirs.dataset.armed
