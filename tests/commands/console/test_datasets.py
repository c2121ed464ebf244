"""Datasets in the console: armed by whom, since when; switched only after a confirmation."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse

from commands import datasets
from commands.models import Dataset, Experiment
from organizations.provisioning import provision
from tests.factories import Scene
from tests.visitors import Visitor, queries_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]

PAGE = "/datasets/"


def test_the_list_says_who_armed_it(scene: Scene) -> None:
    shown = Visitor(scene.viewer).get(PAGE)
    assert f"Armed by {scene.owner.user.email}" in shown.text
    assert not shown.has(f"switch-{scene.dataset.pk}")


def test_arming_is_confirmed_first(scene: Scene) -> None:
    datasets.disarm(scene.operator, scene.dataset.pk)
    operator, path = Visitor(scene.operator), reverse("arm", args=[scene.dataset.pk])
    assert "Armed means live." in operator.get_sheet(path).text
    scene.dataset.refresh_from_db()
    assert not scene.dataset.armed
    assert operator.post_sheet(path).status == 204
    scene.dataset.refresh_from_db()
    assert scene.dataset.armed_by == scene.operator.user


def test_disarming_says_that_what_is_queued_goes_on(scene: Scene) -> None:
    operator, path = Visitor(scene.operator), reverse("disarm", args=[scene.dataset.pk])
    assert "goes on" in operator.get(path).text
    assert operator.post(path).to == PAGE
    scene.dataset.refresh_from_db()
    assert not scene.dataset.armed


def test_arming_on_the_way_to_a_dispatch_goes_on_with_it(scene: Scene) -> None:
    operator, path = Visitor(scene.operator), reverse("arm", args=[scene.dataset.pk])
    onward = reverse("dispatch", args=[scene.issued().pk])
    assert onward in operator.get_sheet(path, next=onward).html
    answer = operator.post_sheet(path, next=onward)
    assert json.loads(answer.response.headers["HX-Trigger"])["acted"]["open"] == onward
    assert operator.post(path, next=onward).to == onward
    assert operator.post(path, next="https://elsewhere.example/").to == PAGE


def test_a_viewer_arms_nothing(scene: Scene) -> None:
    for act in ("arm", "disarm"):
        path = reverse(act, args=[scene.dataset.pk])
        assert Visitor(scene.viewer).post(path).status == 403


def test_a_poll_notices_that_somebody_armed(scene: Scene) -> None:
    visitor = Visitor(scene.viewer)
    revision = visitor.get(PAGE).revision
    assert visitor.poll(PAGE, "datasets-live", revision).status == 204
    datasets.disarm(scene.operator, scene.dataset.pk)
    assert "Not armed" in visitor.poll(PAGE, "datasets-live", revision).text


def test_an_owner_makes_experiments_and_datasets_once(scene: Scene) -> None:
    owner = Visitor(scene.owner)
    token = owner.get_sheet(reverse("new_experiment")).value("token")
    for _ in range(2):
        owner.post_sheet(reverse("new_experiment"), name="Winter field", token=token)
    experiment = Experiment.objects.get(name="Winter field")
    token = owner.get_sheet(reverse("new_dataset")).value("token")
    form = {"experiment": str(experiment.pk), "name": "Pack A", "token": token}
    for _ in range(2):
        assert owner.post_sheet(reverse("new_dataset"), **form).status == 204
    assert not Dataset.objects.get(name="Pack A").armed


def test_only_an_owner_makes_them(scene: Scene) -> None:
    operator = Visitor(scene.operator)
    assert not operator.get(PAGE).has("new-dataset")
    for name in ("new_experiment", "new_dataset"):
        assert operator.post(reverse(name), name="Mine", token="x").status == 403


def test_a_dataset_without_a_name_is_refused_beside_the_field(scene: Scene) -> None:
    owner = Visitor(scene.owner)
    token = owner.get_sheet(reverse("new_dataset")).value("token")
    form = {"experiment": str(scene.experiment.pk), "name": " ", "token": token}
    refused = owner.post_sheet(reverse("new_dataset"), **form)
    assert refused.status == 422
    assert refused.has("id_name_error")


def test_the_list_takes_the_same_queries_for_three_datasets_and_thirty(scene: Scene) -> None:
    visitor = Visitor(scene.viewer)
    for number in range(2):
        datasets.create_dataset(scene.owner, scene.experiment, f"few {number}")
    few = queries_of(lambda: visitor.get(PAGE))
    for number in range(27):
        experiment = datasets.create_experiment(scene.owner, f"experiment {number}")
        made = datasets.create_dataset(scene.owner, experiment, f"many {number}", scene.endpoint)
        datasets.arm(scene.owner, made.pk)
    assert queries_of(lambda: visitor.get(PAGE)) == few


def test_without_any_experiment_the_page_teaches_the_next_step(db: None) -> None:
    bare = provision("Nothing yet")
    assert Visitor(bare.actor("owner")).get(PAGE).has("first-experiment")
    assert "An owner of the organization" in Visitor(bare.actor("viewer")).get(PAGE).text
    assert (
        "A command belongs to a dataset"
        in Visitor(bare.actor("operator")).get("/commands/new/").text
    )
