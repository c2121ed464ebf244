"""Endpoints in the API."""

from __future__ import annotations

from typing import Any

import pytest

from organizations import exact_json
from organizations.models import AuditEntry
from organizations.rules import roles
from tests.factories import RECEIVER_URL, Scene, fail_with, fresh
from tests.organizations.api.client import Api, content, problem
from webhooks import secrets
from webhooks.models import Endpoint
from webhooks.policies import POLICIES

FIELDS = {
    "id",
    "name",
    "url",
    "policy",
    "receivesCommands",
    "isDefault",
    "eventTypes",
    "description",
    "headers",
    "maxInFlight",
    "enabled",
    "disabledAt",
    "disabledReason",
    "archivedAt",
    "createdAt",
    "health",
}
DETAILS = FIELDS | {"schedule"}


@pytest.fixture
def api(scene: Scene) -> Api:
    return Api.of(scene)


def wanted(**changes: Any) -> dict[str, Any]:
    return {"name": "Ground station", "url": RECEIVER_URL, **changes}


def test_an_endpoint_is_registered_and_its_secret_shown_this_once(scene: Scene, api: Api) -> None:
    answer = api.post("webhooks/endpoints", wanted(eventTypes=["command.failed"]))

    created = content(answer)
    assert answer.status_code == 201
    assert set(created) == DETAILS | {"secret"}
    secret = created.pop("secret")
    endpoint = Endpoint.objects.latest("pk")
    assert secrets.decrypt(endpoint.secrets.get().ciphertext) == secret
    assert created == {
        "id": str(endpoint.pk),
        "name": "Ground station",
        "url": RECEIVER_URL,
        "policy": "event",
        "receivesCommands": False,
        "isDefault": False,
        "eventTypes": ["command.failed"],
        "description": "",
        "headers": [],
        "maxInFlight": None,
        "enabled": True,
        "disabledAt": None,
        "disabledReason": None,
        "archivedAt": None,
        "createdAt": created["createdAt"],
        "health": {
            "recentOutcomes": [],
            "consecutiveFailures": 0,
            "failuresUntilDisabled": 5,
            "successRate": None,
            "medianDurationMs": None,
            "since": created["createdAt"],
        },
        "schedule": [
            {"attempt": 1, "waitSeconds": 0, "accumulatedSeconds": 0},
            {"attempt": 2, "waitSeconds": 5, "accumulatedSeconds": 5},
            {"attempt": 3, "waitSeconds": 10, "accumulatedSeconds": 15},
        ],
    }
    assert content(api.get(f"webhooks/endpoints/{endpoint.pk}")) == created
    assert secret.encode() not in api.get("webhooks/endpoints").content


@pytest.mark.parametrize("policy", list(POLICIES))
@pytest.mark.parametrize("said", [None, True, False])
def test_commands_go_to_policy_command_unless_said(
    api: Api, policy: str, said: bool | None
) -> None:
    asked = {"policy": policy} if said is None else {"policy": policy, "receivesCommands": said}

    created = content(api.post("webhooks/endpoints", wanted(**asked)))

    assert created["receivesCommands"] is (policy == "command" if said is None else said)


@pytest.mark.parametrize(
    "url",
    [
        "http://receiver.example/hook",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://user:password@receiver.example/",
        "https://receiver.example/#part",
        "https://10.0.0.1/",
        "ftp://receiver.example/",
        "receiver.example",
        "https://receiver.example:99999/",
        "https://receiver.example/" + "x" * 2048,
    ],
)
def test_a_url_that_webhooks_may_not_go_to_is_refused_with_the_reason(api: Api, url: str) -> None:
    before = Endpoint.objects.count()

    told = problem(api.post("webhooks/endpoints", wanted(url=url)), 400, "url_not_allowed")

    assert told["errors"] == {"url": [told["detail"]]}
    assert "password@" not in told["detail"]
    assert Endpoint.objects.count() == before


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "x" * 201),
        ("url", ""),
        ("url", 5),
        ("policy", "often"),
        ("policy", None),
        ("eventTypes", "command.failed"),
        ("eventTypes", {}),
        ("eventTypes", ["x"] * 101),
        ("eventTypes", ["command.failed", "no type"]),
        ("eventTypes", ["*.failed"]),
        ("receivesCommands", "true"),
        ("receivesCommands", 1),
        ("receivesCommands", None),
        ("description", "x" * 2001),
        ("maxInFlight", 0),
        ("maxInFlight", 1001),
        ("headers", []),
        ("headers", {"Host": "elsewhere.example"}),
        ("headers", {"X-Key": "two\r\nlines"}),
        ("isDefault", True),
        ("enabled", False),
        ("secret", "whsec_mine"),
    ],
)
def test_a_field_that_breaks_a_rule_is_named(api: Api, field: str, value: object) -> None:
    told = problem(
        api.post("webhooks/endpoints", wanted(**{field: value})), 400, "validation_error"
    )

    assert list(told["errors"]) == [field]


def test_health_counts_the_failures_in_a_row(scene: Scene, api: Api) -> None:
    fail_with(scene.dispatched(), [200])
    fail_with(scene.dispatched(), [503, 400])

    [row] = api.items("webhooks/endpoints")

    assert row["health"] == {
        "recentOutcomes": ["failed", "failed", "delivered"],
        "consecutiveFailures": 2,
        "failuresUntilDisabled": 18,
        "successRate": exact_json.loads("0.3333"),
        "medianDurationMs": None,
        "since": row["createdAt"],
    }


def test_disabling_ends_what_waits_and_says_why(scene: Scene, api: Api) -> None:
    command = scene.dispatched()

    answer = api.post(
        f"webhooks/endpoints/{scene.endpoint.pk}/disable", {"reason": "Moving house."}
    )

    disabled = content(answer)
    assert answer.status_code == 200
    assert (disabled["enabled"], disabled["disabledReason"]) == (False, "Moving house.")
    assert disabled["disabledAt"] is not None
    assert fresh(command).failure_reason == "endpoint_disabled"


def test_disabling_needs_no_reason(scene: Scene, api: Api) -> None:
    path = f"webhooks/endpoints/{scene.endpoint.pk}/disable"

    assert content(api.post(path))["disabledReason"] == "Disabled by an owner."
    assert content(api.post(path, {"reason": "again"}))["disabledReason"] == "Disabled by an owner."


def test_an_owner_s_key_enables_again_and_counters_start_from_zero(scene: Scene, api: Api) -> None:
    fail_with(scene.dispatched(), [400])
    path = f"webhooks/endpoints/{scene.endpoint.pk}"
    api.post(f"{path}/disable")

    enabled = content(api.post(f"{path}/enable"))

    assert (enabled["enabled"], enabled["disabledAt"], enabled["disabledReason"]) == (
        True,
        None,
        None,
    )
    assert enabled["health"]["consecutiveFailures"] == 0
    entry = AuditEntry.objects.latest("pk")
    assert (entry.act, entry.via, entry.user) == ("endpoint.enable", "api", scene.owner.user)
    assert entry.api_key


def test_a_narrow_key_of_an_owner_s_enables_nothing(scene: Scene, api: Api) -> None:
    path = f"webhooks/endpoints/{scene.endpoint.pk}"
    api.post(f"{path}/disable")
    narrow = Api.with_scopes(scene, "endpoints:read", "commands:dispatch", "commands:ack")

    problem(narrow.post(f"{path}/enable"), 403, "missing_scope")

    assert not content(api.get(path))["enabled"]


@pytest.mark.parametrize("act", ["enable", "disable"])
@pytest.mark.parametrize("role", [roles.OPERATOR, roles.VIEWER])
def test_nobody_but_an_owner_switches_an_endpoint(scene: Scene, role: str, act: str) -> None:
    path = f"webhooks/endpoints/{scene.endpoint.pk}/{act}"

    problem(Api.of(scene, role).post(path), 403, "missing_scope")


def test_a_viewer_reads_endpoints(scene: Scene) -> None:
    [row] = Api.of(scene, roles.VIEWER).items("webhooks/endpoints")

    assert set(row) == FIELDS
