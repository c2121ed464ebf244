"""POST /api/commands/retract"""

from __future__ import annotations

from typing import Any

import pytest
from django.http import HttpResponse

from commands.models import Command
from commands.rules.states import State
from organizations.rules import roles
from tests.factories import Scene, answer, record
from tests.organizations.api.client import Api, content, problem


@pytest.fixture
def api(scene: Scene) -> Api:
    return Api.of(scene, roles.OPERATOR)


def retract(api: Api, command: Command, **more: Any) -> HttpResponse:
    return api.post("commands/retract", {"commandId": str(command.pk), **more})


@pytest.mark.parametrize("state", list(State))
def test_a_command_in_any_state_is_withdrawn(scene: Scene, api: Api, state: State) -> None:
    told = retract(api, scene.in_state(state), reason="wrong vehicle")

    command = content(told)
    assert told.status_code == 200
    assert command["state"] == "retracted"
    assert command["retractedBy"] == scene.operator.user.email
    assert command["retractedAt"] is not None
    assert command["attemptOnTheWire"] is False
    if state != State.RETRACTED:
        assert command["retractionReason"] == "wrong vehicle"


def test_what_waited_is_not_attempted_any_more(scene: Scene, api: Api) -> None:
    command = content(retract(api, scene.dispatched()))

    assert command["nextAttemptAt"] is None


def test_an_attempt_on_the_wire_is_admitted_and_its_outcome_recorded(
    scene: Scene, api: Api
) -> None:
    command, attempt = scene.on_the_wire()

    assert content(retract(api, command))["attemptOnTheWire"] is True

    record(answer(attempt, 200))
    assert content(api.get(f"commands/{command.pk}"))["state"] == "retracted"
    [row] = api.items("webhooks/deliveries", commandId=str(command.pk))
    assert (row["statusCode"], row["verdict"]) == (200, "delivered")


def test_retracting_again_changes_nothing(scene: Scene, api: Api) -> None:
    command = scene.issued()

    first = content(retract(api, command, reason="first"))
    again = content(retract(Api.of(scene), command, reason="second"))

    assert again == first


@pytest.mark.parametrize("reason", ["x" * 501, 5, None, "\0"])
def test_a_reason_that_breaks_a_rule_is_refused(scene: Scene, api: Api, reason: object) -> None:
    told = problem(retract(api, scene.issued(), reason=reason), 400, "validation_error")

    assert list(told["errors"]) == ["reason"]


def test_a_reason_is_not_needed(scene: Scene, api: Api) -> None:
    assert content(retract(api, scene.issued(), reason=""))["retractionReason"] is None
    assert retract(api, scene.issued(), reason="é" * 500).status_code == 200
