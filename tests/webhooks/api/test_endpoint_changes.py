"""Endpoints changed in the API: edited, archived, pinged, their secrets rotated."""

from __future__ import annotations

from typing import Any

import pytest

from organizations.rules import roles
from tests import factories
from tests.factories import RECEIVER_URL, Scene, fail_with, fresh
from tests.organizations.api.client import Api, content, problem
from webhooks import endpoints, secrets
from webhooks.models import Endpoint, EndpointSecret


@pytest.fixture
def api(scene: Scene) -> Api:
    return Api.of(scene)


def path_of(scene: Scene, act: str = "") -> str:
    return f"webhooks/endpoints/{scene.endpoint.pk}{act}"


# --- PATCH --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "New name"),
        ("url", "https://93.184.216.35/new"),
        ("policy", "telemetry"),
        ("eventTypes", ["command.*"]),
        ("description", ""),
        ("maxInFlight", 3),
        ("isDefault", True),
    ],
)
def test_what_is_named_changes_and_the_rest_stays(
    scene: Scene, api: Api, field: str, value: object
) -> None:
    before = content(api.get(path_of(scene)))

    answer = api.patch(path_of(scene), {field: value})

    after = content(answer)
    assert answer.status_code == 200
    assert after == content(api.get(path_of(scene)))
    assert after[field] == value
    same = set(before) - {field, "health", "schedule"}
    assert {name: after[name] for name in same} == {name: before[name] for name in same}


def test_the_schedule_follows_the_policy(scene: Scene, api: Api) -> None:
    schedule = content(api.patch(path_of(scene), {"policy": "telemetry"}))["schedule"]

    assert len(schedule) == 13
    assert schedule[-1] == {"attempt": 13, "waitSeconds": 61440, "accumulatedSeconds": 122850}


def test_an_edit_starts_the_counters_from_zero(scene: Scene, api: Api) -> None:
    fail_with(scene.send(), [503] * 3)

    health = content(api.patch(path_of(scene), {"description": "mended"}))["health"]

    assert (health["consecutiveFailures"], health["successRate"]) == (0, None)


def test_an_edit_never_enables(scene: Scene, api: Api) -> None:
    api.post(path_of(scene, "/disable"))

    assert content(api.patch(path_of(scene), {"name": "New"}))["enabled"] is False


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("enabled", True),
        ("secret", "********"),
        ("secret", "whsec_AAAA"),
        ("id", "x"),
        ("disabledAt", None),
        ("archivedAt", None),
        ("health", {}),
        ("schedule", []),
        ("name", ""),
        ("name", None),
        ("name", "a\0b"),
        ("url", None),
        ("policy", "often"),
        ("policy", "ping"),
        ("eventTypes", None),
        ("eventTypes", ["No Type"]),
        ("receivesCommands", None),
        ("receivesCommands", False),
        ("isDefault", False),
        ("isDefault", "true"),
        ("description", None),
        ("headers", ["X-Key"]),
        ("headers", None),
        ("headers", {"Content-Length": "5"}),
        ("headers", {"webhook-id": "mine"}),
        ("headers", {"X-Key": "a\r\nHost: b"}),
        ("maxInFlight", 0),
        ("maxInFlight", "3"),
        ("maxInFlight", 1.0),
    ],
)
def test_what_cannot_be_changed_so_is_refused_with_the_field(
    scene: Scene, api: Api, field: str, value: object
) -> None:
    before = content(api.get(path_of(scene)))

    told = problem(
        api.patch(path_of(scene), {"description": "new", field: value}), 400, "validation_error"
    )

    assert list(told["errors"]) == [field]
    assert content(api.get(path_of(scene))) == before


@pytest.mark.parametrize("url", ["https://10.0.0.1/", "https://user:pw@receiver.example/", "x"])
def test_a_url_is_checked_as_when_it_was_registered(scene: Scene, api: Api, url: str) -> None:
    told = problem(api.patch(path_of(scene), {"url": url}), 400, "url_not_allowed")

    assert told["errors"] == {"url": [told["detail"]]}
    assert "pw@" not in told["detail"]


def test_headers_are_taken_by_value_and_shown_by_name(scene: Scene, api: Api) -> None:
    told = api.patch(
        path_of(scene), {"headers": {"X-Tenant": "7", "Authorization": "Bearer confidential"}}
    )

    assert content(told)["headers"] == ["Authorization", "X-Tenant"]
    for answer in (told, api.get(path_of(scene)), api.get("webhooks/endpoints")):
        assert b"confidential" not in answer.content
    api.patch(path_of(scene), {"headers": {"X-Tenant": None}})
    stored = Endpoint.objects.get(pk=scene.endpoint.pk).headers_ciphertext
    assert dict(secrets.decrypt_headers(stored)) == {"Authorization": "Bearer confidential"}


def test_a_refused_header_is_not_repeated(scene: Scene, api: Api) -> None:
    answer = api.patch(path_of(scene), {"headers": {"X-Key": "confidential\n"}})

    assert answer.status_code == 400
    assert b"confidential" not in answer.content


@pytest.mark.parametrize("role", [roles.OPERATOR, roles.VIEWER])
@pytest.mark.parametrize("act", ["", "/archive", "/ping", "/rotate-secret"])
def test_nobody_but_an_owner_changes_an_endpoint(scene: Scene, role: str, act: str) -> None:
    api, path = Api.of(scene, role), path_of(scene, act)

    problem(api.post(path) if act else api.patch(path, {"name": "Mine"}), 403, "missing_scope")


# --- archive ------------------------------------------------------------------------------------


def test_an_archived_endpoint_is_in_no_list_but_that_of_the_archived(
    scene: Scene, api: Api
) -> None:
    command = scene.dispatched()

    answer = api.post(path_of(scene, "/archive"))

    archived = content(answer)
    assert answer.status_code == 200
    assert (archived["enabled"], archived["isDefault"]) == (False, False)
    assert archived["archivedAt"]
    assert archived["disabledReason"] == "Archived by an owner."
    assert fresh(command).failure_reason == "endpoint_disabled"
    assert api.items("webhooks/endpoints") == []
    [row] = api.items("webhooks/endpoints", archived="true")
    assert row["id"] == archived["id"]
    assert content(api.get(path_of(scene))) == archived
    assert content(api.post(path_of(scene, "/archive"))) == archived
    problem(api.get("webhooks/endpoints", archived="yes"), 400, "validation_error")


@pytest.mark.parametrize("act", ["", "/enable", "/ping", "/rotate-secret"])
def test_nothing_else_can_be_done_with_it(scene: Scene, api: Api, act: str) -> None:
    api.post(path_of(scene, "/archive"))
    path = path_of(scene, act)

    told = problem(
        api.post(path) if act else api.patch(path, {"name": "New"}), 409, "endpoint_archived"
    )

    assert "Register a new one" in told["detail"]


# --- rotate-secret ------------------------------------------------------------------------------


def test_a_new_secret_is_shown_this_once(scene: Scene, api: Api) -> None:
    answer = api.post(path_of(scene, "/rotate-secret"))

    rotated = content(answer)
    secret = rotated["secret"]
    current = EndpointSecret.objects.get(endpoint=scene.endpoint, expires_at=None)
    assert answer.status_code == 200
    assert secrets.decrypt(current.ciphertext) == secret
    assert rotated["previousSecretExpiresAt"]
    for path in (path_of(scene), "webhooks/endpoints"):
        assert b"whsec_" not in api.get(path).content


@pytest.mark.parametrize(
    ("asked", "signing"),
    [
        ({}, 2),
        ({"overlapHours": 168}, 2),
        ({"overlapHours": 0}, 1),
        ({"emergency": True}, 1),
        ({"emergency": True, "overlapHours": 0}, 1),
        ({"emergency": False, "overlapHours": 1}, 2),
    ],
)
def test_an_overlap_or_none(scene: Scene, api: Api, asked: dict[str, Any], signing: int) -> None:
    assert api.post(path_of(scene, "/rotate-secret"), asked).status_code == 200

    assert len(factories.claim(scene.send()).secret_ciphertexts) == signing


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"overlapHours": -1}, "overlapHours"),
        ({"overlapHours": 169}, "overlapHours"),
        ({"overlapHours": "24"}, "overlapHours"),
        ({"overlapHours": None}, "overlapHours"),
        ({"emergency": True, "overlapHours": 24}, "overlapHours"),
        ({"emergency": 1}, "emergency"),
        ({"secret": "whsec_mine"}, "secret"),
    ],
)
def test_a_rotation_that_makes_no_sense_changes_nothing(
    scene: Scene, api: Api, asked: dict[str, Any], field: str
) -> None:
    told = problem(api.post(path_of(scene, "/rotate-secret"), asked), 400, "validation_error")

    assert list(told["errors"]) == [field]
    assert EndpointSecret.objects.filter(endpoint=scene.endpoint).count() == 1


def test_too_many_overlaps_are_refused(scene: Scene, api: Api) -> None:
    for _ in range(4):
        api.post(path_of(scene, "/rotate-secret"))

    problem(api.post(path_of(scene, "/rotate-secret")), 409, "too_many_secrets")


# --- ping ---------------------------------------------------------------------------------------


def test_a_ping_is_accepted_and_its_result_is_read_by_its_event(scene: Scene, api: Api) -> None:
    endpoints.disable(scene.owner, scene.endpoint.pk, "broken")

    answer = api.post(path_of(scene, "/ping"))

    told = content(answer)
    assert answer.status_code == 202
    assert set(told) == {"deliveryId", "eventId"}
    assert api.items("webhooks/deliveries", eventId=told["eventId"]) == []
    delivery = scene.endpoint.deliveries.get(pk=told["deliveryId"])
    factories.fail_with(delivery, [200])
    [attempt] = api.items("webhooks/deliveries", eventId=told["eventId"])
    assert (attempt["deliveryId"], attempt["statusCode"]) == (told["deliveryId"], 200)
    assert attempt["nextAttemptAt"] is None
    by_endpoint = api.items("webhooks/deliveries", endpointId=str(scene.endpoint.pk))
    assert by_endpoint == [attempt]


# --- figures ------------------------------------------------------------------------------------


def test_health_has_a_success_rate_and_a_median_duration(scene: Scene, api: Api) -> None:
    for status, milliseconds in ((200, 40), (503, 10_000), (200, 60), (200, 20)):
        attempt = factories.claim(scene.send())
        factories.record(factories.answer(attempt, status, duration_ms=milliseconds))
    factories.record(factories.lost(factories.claim(scene.send())))

    health = content(api.get(path_of(scene)))["health"]

    assert float(health["successRate"]) == 0.75
    assert health["medianDurationMs"] == 40


def test_registering_takes_headers_and_a_limit(api: Api) -> None:
    created = content(
        api.post(
            "webhooks/endpoints",
            {
                "name": "New",
                "url": RECEIVER_URL,
                "headers": {"X-Key": "confidential"},
                "maxInFlight": 2,
            },
        )
    )

    assert (created["headers"], created["maxInFlight"]) == (["X-Key"], 2)
