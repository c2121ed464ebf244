"""POST /api/commands/issue"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.http import HttpResponse

from commands.models import Command
from organizations.rules import roles
from tests.factories import Scene, new_scene
from tests.organizations.api.client import Api, content, problem

FIELDS = {
    "id",
    "clientToken",
    "experimentId",
    "datasetId",
    "name",
    "parameters",
    "state",
    "issuedBy",
    "issuedAt",
    "dispatchedAt",
    "deliveredAt",
    "ackDeadline",
    "settledAt",
    "failureReason",
    "retractedBy",
    "retractedAt",
    "retractionReason",
    "reissueOf",
    "attempts",
    "nextAttemptAt",
}


def order(scene: Scene, **changes: Any) -> dict[str, Any]:
    return {
        "datasetId": str(scene.dataset.pk),
        "clientToken": "token",
        "name": "set_heading",
        "parameters": {"heading": 90},
        **changes,
    }


@pytest.fixture
def api(scene: Scene) -> Api:
    return Api.of(scene, roles.OPERATOR)


def issue(api: Api, scene: Scene, **changes: Any) -> HttpResponse:
    return api.post("commands/issue", order(scene, **changes))


def test_a_command_is_put_on_record(scene: Scene, api: Api) -> None:
    answer = issue(api, scene)

    command = content(answer)
    assert answer.status_code == 201
    assert "Idempotency-Replayed" not in answer
    assert set(command) == FIELDS
    assert command["issuedAt"].endswith("Z")
    assert command == {
        **dict.fromkeys(FIELDS),
        "id": str(Command.objects.get().pk),
        "clientToken": "token",
        "experimentId": str(scene.experiment.pk),
        "datasetId": str(scene.dataset.pk),
        "name": "set_heading",
        "parameters": {"heading": 90},
        "state": "logged",
        "issuedBy": scene.operator.user.email,
        "issuedAt": command["issuedAt"],
        "attempts": 0,
    }


def test_the_same_again_returns_the_same_command(scene: Scene, api: Api) -> None:
    first = issue(api, scene)
    again = issue(api, scene)

    assert again.status_code == 200
    assert again["Idempotency-Replayed"] == "true"
    assert content(again) == content(first)
    assert Command.objects.count() == 1


def test_the_same_again_shows_where_the_command_stands_now(scene: Scene, api: Api) -> None:
    command_id = content(issue(api, scene))["id"]
    api.post("commands/retract", {"commandId": command_id})

    assert content(issue(api, scene))["state"] == "retracted"


@pytest.mark.parametrize(
    "change", [{"name": "other"}, {"parameters": {"heading": 91}}, {"parameters": {}}]
)
def test_the_same_token_for_something_else_is_a_conflict(
    scene: Scene, api: Api, change: dict[str, Any]
) -> None:
    issue(api, scene)

    problem(issue(api, scene, **change), 409, "client_token_conflict")
    assert Command.objects.count() == 1


def test_a_token_is_an_organization_s_own(scene: Scene, api: Api) -> None:
    other = new_scene("Another")

    assert issue(api, scene).status_code == 201
    assert issue(Api.of(other), other).status_code == 201


@pytest.mark.parametrize("missing", ["datasetId", "clientToken", "name", "parameters"])
def test_each_field_is_needed(scene: Scene, api: Api, missing: str) -> None:
    body = order(scene)
    del body[missing]

    told = problem(api.post("commands/issue", body), 400, "validation_error")

    assert list(told["errors"]) == [missing]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("clientToken", ""),
        ("clientToken", "x" * 201),
        ("clientToken", 1),
        ("clientToken", None),
        ("clientToken", True),
        ("clientToken", ["a"]),
        ("clientToken", "a\0b"),
        ("name", ""),
        ("name", "x" * 201),
        ("name", 1),
        ("name", "\0"),
        ("parameters", []),
        ("parameters", None),
        ("parameters", "{}"),
        ("parameters", 1),
        ("datasetId", 1),
        ("datasetId", ""),
        ("datasetId", None),
        ("typo", 1),
        ("reissueOf", "x"),
    ],
)
def test_a_field_that_breaks_a_rule_is_named_and_nothing_is_made(
    scene: Scene, api: Api, field: str, value: Any
) -> None:
    told = problem(issue(api, scene, **{field: value}), 400, "validation_error")

    assert list(told["errors"]) == [field]
    assert Command.objects.count() == 0


@pytest.mark.parametrize("field", ["clientToken", "name"])
@pytest.mark.parametrize("text", ["x", "é" * 200, "🚀" * 200, " spaced ", "</script>", "\u202e"])
def test_any_text_of_1_to_200_characters_is_kept_as_it_is(
    scene: Scene, api: Api, field: str, text: str
) -> None:
    answer = issue(api, scene, **{field: text})

    assert answer.status_code == 201
    assert content(answer)[field] == text


def test_a_dataset_that_is_not_armed_takes_commands(scene: Scene, api: Api) -> None:
    api.post(f"datasets/{scene.dataset.pk}/disarm")

    assert issue(api, scene).status_code == 201


@pytest.mark.django_db(transaction=True)
def test_of_20_at_once_with_one_token_one_is_made_and_19_are_replays(scene: Scene) -> None:
    body = order(scene)
    key = scene.provisioned.members[roles.OPERATOR].api_key

    def call(_: int) -> tuple[int, str | None, str]:
        try:
            answer = Api(key).post("commands/issue", body)
            return answer.status_code, answer.get("Idempotency-Replayed"), content(answer)["id"]
        finally:
            connection.close()

    with ThreadPoolExecutor(20) as threads:
        answers = list(threads.map(call, range(20)))

    assert sorted(status for status, _, _ in answers) == [200] * 19 + [201]
    assert [replayed for status, replayed, _ in answers if status == 200] == ["true"] * 19
    assert len({command_id for _, _, command_id in answers}) == 1
    assert Command.objects.count() == 1


def test_a_viewer_issues_nothing(scene: Scene) -> None:
    problem(issue(Api.of(scene, roles.VIEWER), scene), 403, "missing_scope")
