"""POST /api/commands/dispatch"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.http import HttpResponse

from commands.models import Command
from organizations.rules import roles
from tests.factories import Scene, claim
from tests.organizations.api.client import Api, content, problem
from webhooks import endpoints
from webhooks.models import Delivery, Endpoint


@pytest.fixture
def api(scene: Scene) -> Api:
    return Api.of(scene, roles.OPERATOR)


def dispatch(api: Api, command: Command, **options: Any) -> HttpResponse:
    return api.post("commands/dispatch", {"commandId": str(command.pk), **options})


def test_a_command_is_queued_and_its_first_attempt_is_due(scene: Scene, api: Api) -> None:
    answer = dispatch(api, scene.issued())

    command = content(answer)
    assert answer.status_code == 202
    assert command["state"] == "queued"
    assert command["attempts"] == 0
    assert command["nextAttemptAt"] is not None
    assert Delivery.objects.count() == 1


@pytest.mark.parametrize(("asked", "seconds"), [({}, 300), ({"ackTimeoutSeconds": 30}, 30)])
def test_the_deadline_counts_from_the_dispatch(
    scene: Scene, api: Api, asked: dict[str, int], seconds: int
) -> None:
    command = content(dispatch(api, scene.issued(), **asked))

    dispatched, deadline = (
        datetime.fromisoformat(command[name]) for name in ("dispatchedAt", "ackDeadline")
    )
    assert deadline - dispatched == timedelta(seconds=seconds)


@pytest.mark.parametrize("seconds", [30, 31, 3599, 3600])
def test_a_timeout_in_range_is_taken(scene: Scene, api: Api, seconds: int) -> None:
    assert dispatch(api, scene.issued(), ackTimeoutSeconds=seconds).status_code == 202


@pytest.mark.parametrize("seconds", [29, 3601, 0, -30, 10**30, True, "30", None, [], {}])
def test_a_timeout_that_is_no_integer_in_range_is_refused(
    scene: Scene, api: Api, seconds: object
) -> None:
    command = scene.issued()

    told = problem(dispatch(api, command, ackTimeoutSeconds=seconds), 400, "validation_error")

    assert list(told["errors"]) == ["ackTimeoutSeconds"]
    command.refresh_from_db()
    assert command.state == "logged"


@pytest.mark.parametrize("text", ["30.0", "3e1", "30.5", "1E999999999999", "NaN", "0x1e", "030"])
def test_a_number_that_is_no_integer_is_refused(scene: Scene, api: Api, text: str) -> None:
    body = f'{{"commandId": "{scene.issued().pk}", "ackTimeoutSeconds": {text}}}'

    assert api.send("commands/dispatch", body).status_code == 400


def test_an_unarmed_dataset_refuses_and_says_so_on_the_command(scene: Scene, api: Api) -> None:
    command = scene.issued()
    api.post(f"datasets/{scene.dataset.pk}/disarm")

    told = problem(dispatch(api, command), 409, "dataset_unarmed")

    assert "not armed" in told["detail"]
    detail = content(api.get(f"commands/{command.pk}"))
    assert detail["state"] == "logged"
    assert detail["diagnosis"]["code"] == "dispatch_refused"
    assert detail["timeline"][-1]["kind"] == "dispatch_refused"
    assert detail["timeline"][-1]["reason"] == "dataset_unarmed"


def test_a_disabled_endpoint_refuses(scene: Scene, api: Api) -> None:
    endpoints.disable(scene.owner, scene.endpoint.pk, "")

    problem(dispatch(api, scene.issued()), 409, "endpoint_disabled")


def test_without_an_endpoint_for_commands_it_is_refused(scene: Scene, api: Api) -> None:
    Endpoint.objects.update(is_default=False)

    problem(dispatch(api, scene.issued()), 409, "no_endpoint")


def test_a_second_dispatch_is_refused(scene: Scene, api: Api) -> None:
    command = scene.dispatched()

    problem(dispatch(api, command), 409, "already_dispatched")


def test_a_retracted_command_is_not_dispatched(scene: Scene, api: Api) -> None:
    problem(dispatch(api, scene.in_state("retracted")), 409, "retracted")


def test_an_attempt_shows_as_begun_while_it_is_on_the_wire(scene: Scene, api: Api) -> None:
    command = scene.dispatched()
    claim(command)

    shown = content(api.get(f"commands/{command.pk}"))

    assert (shown["state"], shown["attempts"], shown["nextAttemptAt"]) == ("queued", 1, None)
