"""GET /api/webhooks/deliveries: one row an attempt."""

from __future__ import annotations

import pytest

from organizations.rules import roles
from tests.factories import Scene, answer, claim, fail_with, lost, no_answer, record
from tests.organizations.api.client import Api, content

FIELDS = {
    "id",
    "deliveryId",
    "eventId",
    "commandId",
    "endpointId",
    "number",
    "dueAt",
    "startedAt",
    "finishedAt",
    "durationMs",
    "statusCode",
    "verdict",
    "phase",
    "errorKind",
    "error",
    "responseExcerpt",
    "nextAttemptAt",
    "latenessMs",
}


@pytest.fixture
def api(scene: Scene) -> Api:
    return Api.of(scene, roles.VIEWER)


def test_each_attempt_is_a_row_and_the_newest_comes_first(scene: Scene, api: Api) -> None:
    command = scene.dispatched()
    fail_with(command, [503, 429, 200])

    rows = api.items("webhooks/deliveries", commandId=str(command.pk))

    assert {frozenset(row) for row in rows} == {frozenset(FIELDS)}
    assert [(row["number"], row["statusCode"], row["verdict"]) for row in rows] == [
        (3, 200, "delivered"),
        (2, 429, "retry"),
        (1, 503, "retry"),
    ]
    assert {row["commandId"] for row in rows} == {str(command.pk)}
    assert {row["endpointId"] for row in rows} == {str(scene.endpoint.pk)}
    assert rows[0]["nextAttemptAt"] is None
    assert rows[1]["nextAttemptAt"] is not None


def test_an_attempt_on_the_wire_has_no_outcome_yet(scene: Scene, api: Api) -> None:
    scene.on_the_wire()

    [row] = api.items("webhooks/deliveries")

    assert row["dueAt"] is not None
    open_yet = FIELDS - {
        "id",
        "deliveryId",
        "eventId",
        "commandId",
        "endpointId",
        "number",
        "dueAt",
    }
    assert {row[name] for name in open_yet} == {None}


def test_an_answer_shows_its_excerpt_as_inert_text(scene: Scene, api: Api) -> None:
    _, attempt = scene.on_the_wire()
    body = b"<img src=x onerror=alert(1)>\xff\0\x1b[31m"
    record(answer(attempt, 500, response_excerpt=body, duration_ms=12))

    [row] = api.items("webhooks/deliveries")

    assert row["responseExcerpt"] == body.decode("utf-8", "replace")
    assert row["durationMs"] == 12
    assert row["latenessMs"] >= 0
    assert api.get("webhooks/deliveries")["X-Content-Type-Options"] == "nosniff"


def test_an_attempt_without_an_answer_says_what_kind_of_error(scene: Scene, api: Api) -> None:
    _, attempt = scene.on_the_wire()
    record(no_answer(attempt, "timeout"))

    [row] = api.items("webhooks/deliveries")

    assert (row["statusCode"], row["errorKind"], row["error"]) == (None, "timeout", "timeout.")


def test_a_lost_attempt_has_no_start_and_a_verdict(scene: Scene, api: Api) -> None:
    _, attempt = scene.on_the_wire()
    record(lost(attempt))

    [row] = api.items("webhooks/deliveries")

    assert (row["verdict"], row["startedAt"], row["latenessMs"]) == ("lost", None, None)


def test_rows_are_narrowed_by_endpoint_event_and_command(scene: Scene, api: Api) -> None:
    command = scene.delivered()
    second = scene.another_endpoint()
    event = scene.send(second)
    record(answer(claim(event), 200))
    assert command.delivery

    def deliveries(**query: object) -> list[str]:
        rows = api.items("webhooks/deliveries", **{k: str(v) for k, v in query.items()})
        return [row["deliveryId"] for row in rows]

    of_command, of_event = str(command.delivery_id), str(event.pk)
    assert deliveries() == [of_event, of_command]
    assert deliveries(endpointId=second.pk) == [of_event]
    assert deliveries(eventId=event.event_id) == [of_event]
    assert deliveries(commandId=command.pk) == [of_command]
    assert deliveries(commandId=command.pk, endpointId=second.pk) == []
    assert deliveries(commandId=command.pk, eventId=command.delivery.event_id) == [of_command]
    assert deliveries(commandId="nonsense") == []
    assert deliveries(commandId="") == []


def test_an_event_that_is_no_command_s_has_no_command(scene: Scene, api: Api) -> None:
    record(answer(claim(scene.send()), 200))

    [row] = api.items("webhooks/deliveries")

    assert row["commandId"] is None


@pytest.mark.parametrize("filtered", [False, True])
def test_pages_follow_one_another_across_endpoints(scene: Scene, api: Api, filtered: bool) -> None:
    command = scene.dispatched()
    fail_with(command, [503, 503])
    for _ in range(2):
        record(answer(claim(scene.send(scene.another_endpoint())), 200))
    fail_with(command, [503])
    query = {"commandId": str(command.pk)} if filtered else {}
    everything = api.items("webhooks/deliveries", **query)

    first = content(api.get("webhooks/deliveries", limit=2, **query))
    second = content(api.get("webhooks/deliveries", limit=200, cursor=first["nextCursor"], **query))

    assert first["items"] + second["items"] == everything
    assert len(everything) == (3 if filtered else 5)
    assert second["nextCursor"] is None
