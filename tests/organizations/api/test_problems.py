"""Every error is a problem in JSON, whoever raised it, and tells nothing of the inside."""

from __future__ import annotations

import logging

import pytest
from django.test import Client

from organizations.rules import roles
from tests.factories import Scene
from tests.organizations.api.client import Api, problem


@pytest.mark.parametrize(
    "path", ["nothing", "commands", "commands/list/", "datasets/x/destroy", "", "é"]
)
def test_an_address_that_does_not_exist_is_a_problem(db: None, path: str) -> None:
    problem(Api().get(path), 404, "not_found")


def test_an_address_outside_of_the_api_is_a_page(db: None, plain_static_files: None) -> None:
    answer = Client().get("/nothing")

    assert answer.status_code == 404
    assert answer["Content-Type"].startswith("text/html")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "commands/issue", "POST"),
        ("DELETE", "commands/list", "GET"),
        ("PUT", "experiments", "GET, POST"),
        ("OPTIONS", "commands/list", "GET"),
        ("TRACE", "datasets", "GET, POST"),
        ("PATCH", "commands/issue", "POST"),
    ],
)
def test_a_method_that_is_not_there_is_refused_with_those_that_are(
    scene: Scene, method: str, path: str, allowed: str
) -> None:
    answer = Api.of(scene).send(path, b"", method=method)

    problem(answer, 405, "method_not_allowed")
    assert set(allowed.split(", ")) <= set(answer["Allow"].split(", "))


def test_head_is_answered_as_get_without_a_body(scene: Scene) -> None:
    answer = Api.of(scene).send("commands/list", b"", method="HEAD")

    assert answer.status_code == 200
    assert answer.content == b""


@pytest.mark.parametrize("accept", ["text/html", "application/problem+json", "image/png", "*/*"])
def test_answers_are_json_whatever_is_accepted(scene: Scene, accept: str) -> None:
    answer = Api.of(scene).send("commands/list", b"", method="GET", HTTP_ACCEPT=accept)

    assert answer["Content-Type"] == "application/json"


def test_a_crash_is_a_problem_without_a_trace(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def crash(*_: object) -> None:
        raise RuntimeError("the password is hunter2")

    monkeypatch.setattr("commands.queries.of_organization", crash)

    answer = Api.of(scene).get("commands/list")

    problem(answer, 500, "internal_error")
    assert b"hunter2" not in answer.content
    assert b"Traceback" not in answer.content
    assert "hunter2" in caplog.text, "the cause belongs into the log"


def test_a_crash_outside_of_the_api_is_a_page(
    plain_static_files: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("organizations.health.connection", None)

    answer = Client(raise_request_exception=False).get("/healthz")

    assert answer.status_code == 500
    assert answer["Content-Type"].startswith("text/html")


def test_a_host_that_is_not_served_is_a_problem(db: None, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)

    answer = Api().send("commands/list", b"", method="GET", HTTP_HOST="evil.example")

    problem(answer, 400, "bad_request")


def test_fields_that_are_wrong_are_told_all_at_once(scene: Scene) -> None:
    body = {"name": 1, "eventTypes": ["ok", 2, ""], "typo": True, "policy": "sometimes"}

    told = problem(Api.of(scene).post("webhooks/endpoints", body), 400, "validation_error")

    assert set(told["errors"]) == {"name", "url", "eventTypes.1", "eventTypes.2", "typo", "policy"}
    assert all(
        isinstance(message, str) for messages in told["errors"].values() for message in messages
    )


def test_no_session_is_needed_and_no_csrf_token(scene: Scene) -> None:
    api = Api.of(scene, roles.OPERATOR)
    api.http.handler.enforce_csrf_checks = True

    answer = api.post("commands/issue", {})

    problem(answer, 400, "validation_error")
    assert not answer.cookies
