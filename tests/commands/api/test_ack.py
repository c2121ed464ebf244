"""POST /api/commands/ack"""

from __future__ import annotations

from typing import Any

import pytest
from django.http import HttpResponse

from commands.models import Command
from organizations.rules import roles
from tests.factories import Scene, answer, record
from tests.organizations.api.client import Api, content, problem


@pytest.fixture
def api(scene: Scene) -> Api:
    return Api.of(scene, roles.OPERATOR)


def report(api: Api, command: Command, outcome: object = "success", **more: Any) -> HttpResponse:
    return api.post("commands/ack", {"commandId": str(command.pk), "outcome": outcome, **more})


@pytest.mark.parametrize(("outcome", "state"), [("success", "acked"), ("rejection", "nacked")])
def test_a_report_settles_a_delivered_command(
    scene: Scene, api: Api, outcome: str, state: str
) -> None:
    told = report(api, scene.delivered(), outcome, detail="done at 12:00")

    assert told.status_code == 200
    assert content(told)["state"] == state
    assert content(told)["settledAt"] is not None


def test_the_same_report_again_gets_the_same_answer(scene: Scene, api: Api) -> None:
    command = scene.delivered()

    first, again = report(api, command), report(api, command)

    assert (first.status_code, again.status_code) == (200, 200)
    assert content(first) == content(again)


def test_a_contradicting_report_is_a_conflict(scene: Scene, api: Api) -> None:
    command = scene.delivered()
    report(api, command, "success")

    problem(report(api, command, "rejection"), 409, "ack_conflict")


def test_an_early_report_is_kept_and_applied_with_the_delivery(scene: Scene, api: Api) -> None:
    command, attempt = scene.on_the_wire()

    first, again = report(api, command), report(api, command)
    assert (first.status_code, again.status_code) == (202, 202)
    assert content(first)["state"] == "queued"
    problem(report(api, command, "rejection"), 409, "ack_conflict")

    record(answer(attempt, 200))
    assert content(api.get(f"commands/{command.pk}"))["state"] == "acked"


def test_a_report_before_any_attempt_is_refused(scene: Scene, api: Api) -> None:
    problem(report(api, scene.dispatched()), 409, "not_delivered")
    problem(report(api, scene.issued()), 409, "not_delivered")


def test_a_late_report_is_refused_and_kept_on_the_timeline(scene: Scene, api: Api) -> None:
    command = scene.overdue()

    problem(report(api, command, detail="sorry"), 409, "ack_too_late")

    detail = content(api.get(f"commands/{command.pk}"))
    assert detail["state"] == "timed_out"
    last = detail["timeline"][-1]
    assert (last["kind"], last["outcome"], last["detail"]) == ("report_refused", "success", "sorry")


@pytest.mark.parametrize("state", ["failed", "retracted"])
def test_a_report_on_what_is_over_is_refused_with_the_state(
    scene: Scene, api: Api, state: str
) -> None:
    problem(report(api, scene.in_state(state)), 409, state)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("outcome", "failure"),
        ("outcome", "Success"),
        ("outcome", None),
        ("outcome", True),
        ("outcome", ["success"]),
        ("outcome", {}),
        ("detail", "x" * 2001),
        ("detail", 5),
        ("detail", "\0"),
        ("detail", None),
        ("note", "x"),
    ],
)
def test_a_report_that_breaks_a_rule_changes_nothing(
    scene: Scene, api: Api, field: str, value: object
) -> None:
    command = scene.delivered()
    body = {"commandId": str(command.pk), "outcome": "success", field: value}

    told = problem(api.post("commands/ack", body), 400, "validation_error")

    assert list(told["errors"]) == [field]
    command.refresh_from_db()
    assert command.state == "delivered"


def test_a_long_detail_is_kept_in_full(scene: Scene, api: Api) -> None:
    command = scene.delivered()

    report(api, command, detail="é" * 2000)

    detail = content(api.get(f"commands/{command.pk}"))
    assert detail["timeline"][-1]["detail"] == "é" * 2000
