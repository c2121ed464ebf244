"""Experiments and datasets."""

from __future__ import annotations

import pytest

from commands.models import Dataset, Experiment
from organizations.rules import roles
from tests.factories import Scene, new_scene
from tests.organizations.api.client import Api, content, problem


@pytest.fixture
def api(scene: Scene) -> Api:
    return Api.of(scene)


def test_an_experiment_is_created_and_listed(scene: Scene, api: Api) -> None:
    answer = api.post("experiments", {"name": "Second"})

    created = content(answer)
    assert answer.status_code == 201
    assert set(created) == {"id", "name", "createdAt"}
    assert created["name"] == "Second"
    assert api.items("experiments")[0] == created


def test_a_dataset_is_created_unarmed_and_listed(scene: Scene, api: Api) -> None:
    answer = api.post("datasets", {"experimentId": str(scene.experiment.pk), "name": "Second"})

    created = content(answer)
    assert answer.status_code == 201
    assert created == {
        "id": str(Dataset.objects.latest("pk").pk),
        "experimentId": str(scene.experiment.pk),
        "name": "Second",
        "armed": False,
        "armedBy": None,
        "armedAt": None,
        "endpointId": None,
        "createdAt": created["createdAt"],
    }
    assert api.items("datasets")[0] == created


def test_a_dataset_may_name_the_endpoint_of_its_commands(scene: Scene, api: Api) -> None:
    endpoint = scene.another_endpoint()
    body = {
        "experimentId": str(scene.experiment.pk),
        "name": "Elsewhere",
        "endpointId": str(endpoint.pk),
    }

    assert content(api.post("datasets", body))["endpointId"] == str(endpoint.pk)


def test_no_endpoint_may_be_said_with_null(scene: Scene, api: Api) -> None:
    body = {"experimentId": str(scene.experiment.pk), "name": "Default", "endpointId": None}

    assert content(api.post("datasets", body))["endpointId"] is None


def test_a_dataset_takes_nothing_of_another_organization(scene: Scene, api: Api) -> None:
    theirs = new_scene("Strangers")
    own, name = str(scene.experiment.pk), "x"

    for body in (
        {"experimentId": str(theirs.experiment.pk), "name": name},
        {"experimentId": own, "name": name, "endpointId": str(theirs.endpoint.pk)},
        {"experimentId": own, "name": name, "endpointId": "nonsense"},
        {"experimentId": "nonsense", "name": name},
    ):
        problem(api.post("datasets", body), 404, "not_found")
    assert not Dataset.objects.filter(name=name).exists()


def test_datasets_are_narrowed_to_an_experiment(scene: Scene, api: Api) -> None:
    second = content(api.post("experiments", {"name": "Second"}))["id"]
    dataset = content(api.post("datasets", {"experimentId": second, "name": "x"}))["id"]

    assert [row["id"] for row in api.items("datasets", experimentId=second)] == [dataset]


def test_arming_says_who_and_since_when_and_disarming_forgets_it(scene: Scene) -> None:
    api = Api.of(scene, roles.OPERATOR)
    path = f"datasets/{scene.dataset.pk}"

    disarmed = content(api.post(f"{path}/disarm"))
    armed = content(api.post(f"{path}/arm"))

    assert (disarmed["armed"], disarmed["armedBy"], disarmed["armedAt"]) == (False, None, None)
    assert (armed["armed"], armed["armedBy"]) == (True, scene.operator.user.email)
    assert armed["armedAt"] is not None


def test_arming_an_armed_dataset_changes_nothing(scene: Scene) -> None:
    api = Api.of(scene, roles.OPERATOR)

    armed = content(api.post(f"datasets/{scene.dataset.pk}/arm"))

    assert armed["armedBy"] == scene.owner.user.email


def test_arming_needs_no_body_and_takes_no_field(scene: Scene, api: Api) -> None:
    path = f"/api/datasets/{scene.dataset.pk}/arm"

    assert api.http.post(path).status_code == 200
    problem(api.post(f"datasets/{scene.dataset.pk}/arm", {"force": True}), 400, "validation_error")


@pytest.mark.parametrize("name", ["", "x" * 201, None, 5, "\0"])
@pytest.mark.parametrize("path", ["experiments", "datasets"])
def test_a_name_has_1_to_200_characters(scene: Scene, api: Api, path: str, name: object) -> None:
    body = {"name": name}
    if path == "datasets":
        body["experimentId"] = str(scene.experiment.pk)

    told = problem(api.post(path, body), 400, "validation_error")

    assert list(told["errors"]) == ["name"]
    assert Experiment.objects.count() == 1


def test_an_operator_creates_neither(scene: Scene) -> None:
    api = Api.of(scene, roles.OPERATOR)

    problem(api.post("experiments", {"name": "x"}), 403, "missing_scope")
    problem(api.post("datasets", {"name": "x"}), 403, "missing_scope")
