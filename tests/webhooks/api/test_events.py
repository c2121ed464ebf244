"""POST /api/events: told once for each key, limited in size and in hops."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings

from organizations import exact_json
from organizations.clock import rfc3339
from organizations.models import AuditEntry
from organizations.rules import roles
from tests.factories import Scene, claim, new_scene, record
from tests.organizations.api.client import Api, content, problem
from tests.racing import race, results
from tests.webhooks.api.publishing import ORDER, ids, page, publish
from webhooks.engine import attempts
from webhooks.engine.sender import Answer, Outgoing, Sender
from webhooks.models import Delivery, Event


@pytest.fixture
def api(scene: Scene) -> Api:
    return Api.of(scene, roles.OPERATOR)


def nothing_was_made() -> bool:
    return not Event.objects.exists() and not Delivery.objects.exists()


# --- publishing ---------------------------------------------------------------------------------


def test_an_event_is_taken_and_goes_to_its_subscribers(scene: Scene, api: Api) -> None:
    for event_types in (["order.*"], ["*"], ["invoice.*"]):
        scene.another_endpoint("event", event_types=event_types)

    taken = publish(api)

    event = Event.objects.get()
    assert taken == {
        "id": str(event.pk),
        "type": "order.created",
        "createdAt": rfc3339(event.created_at),
        "deliveries": 2,
    }
    assert event.organization == scene.organization
    entry = AuditEntry.objects.get(act="event.publish")
    assert (entry.target_id, entry.user) == (str(event.pk), scene.operator.user)


def test_the_attempts_of_an_event_are_found_by_its_id(scene: Scene, api: Api) -> None:
    scene.another_endpoint("event", event_types=["*"])
    taken = publish(api)
    claim(Delivery.objects.get())

    [row] = api.items("webhooks/deliveries", eventId=taken["id"])

    assert (row["eventId"], row["commandId"]) == (taken["id"], None)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"type": "Order"}, "type"),
        ({"type": "order.*"}, "type"),
        ({"type": ""}, "type"),
        ({"type": "a" * 101}, "type"),
        ({"type": 1}, "type"),
        ({"data": []}, "data"),
        ({"data": "{}"}, "data"),
        ({"data": None}, "data"),
        ({"idempotencyKey": ""}, "idempotencyKey"),
        ({"idempotencyKey": "k" * 201}, "idempotencyKey"),
        ({"id": "mine"}, "id"),
    ],
)
def test_what_is_no_event_is_refused_by_its_field(
    api: Api, changes: dict[str, Any], field: str
) -> None:
    told = problem(api.post("events", {**ORDER, **changes}), 400, "validation_error")

    assert list(told["errors"]) == [field]
    assert nothing_was_made()


@pytest.mark.parametrize("data", ["NaN", "-Infinity"])
def test_what_is_not_json_is_refused(api: Api, data: str) -> None:
    answer = api.send("events", f'{{"type": "a.b", "data": {{"x": {data}}}}}')

    problem(answer, 400, "malformed_json")
    assert nothing_was_made()


def test_data_arrives_with_every_digit_and_character(scene: Scene, api: Api) -> None:
    scene.another_endpoint("event", event_types=["*"])
    data = '{"b":1.10,"a":12345678901234567890123,"f":1E+400,"t":"é🚀</script>\\u0000"}'

    api.send("events", f'{{"type": "a.b", "data": {data}}}')

    sent = claim(Delivery.objects.get()).body.decode()
    assert sent.endswith(f'"data":{data}}}')
    assert f'"data":{data}}}' in api.get("events").content.decode()


@pytest.mark.parametrize("event_type", ["command.acked", "command.mine", "endpoint.x", "ping"])
def test_what_only_the_console_tells_of_is_refused(api: Api, event_type: str) -> None:
    problem(api.post("events", {**ORDER, "type": event_type}), 400, "reserved_type")

    assert nothing_was_made()


def test_a_viewer_reads_and_tells_nothing(scene: Scene) -> None:
    viewer = Api.of(scene, roles.VIEWER)

    problem(viewer.post("events", ORDER), 403, "missing_scope")
    assert page(viewer)["items"] == []


# --- size ---------------------------------------------------------------------------------------


def of_size(size: int) -> bytes:
    """A valid body of so many bytes, with characters of more than one."""
    start, end = b'{"type":"order.created","data":{"text":"', b'"}}'
    room = size - len(start) - len(end)
    return start + ("é" * (room // 2)).encode() + b"x" * (room % 2) + end


def test_a_body_of_exactly_the_limit_reaches_two_hundred_endpoints_and_is_stored_once(
    scene: Scene, api: Api
) -> None:
    for _ in range(200):
        scene.another_endpoint("event", event_types=["order.*"])

    answer = api.send("events", of_size(settings.MAX_BODY_BYTES))

    assert answer.status_code == 202
    assert content(answer)["deliveries"] == 200
    event = Event.objects.get()
    assert len(event.body) > settings.MAX_BODY_BYTES
    assert len(page(api)["items"][0]["data"]["text"]) > 500_000


def test_one_byte_over_the_limit_is_refused_and_nothing_is_made(scene: Scene, api: Api) -> None:
    scene.another_endpoint("event", event_types=["order.*"])

    problem(api.send("events", of_size(settings.MAX_BODY_BYTES + 1)), 413, "body_too_large")

    assert nothing_was_made()


# --- idempotency --------------------------------------------------------------------------------


def test_the_same_key_with_the_same_content_is_the_same_event(scene: Scene, api: Api) -> None:
    scene.another_endpoint("event", event_types=["*"])
    body = '{"type": "a.b", "data": {"x": 1.10, "y": [1]}, "idempotencyKey": "k"}'
    other_order = '{"data": {"y": [1], "x": 1.10}, "idempotencyKey": "k", "type": "a.b"}'

    first, again = api.send("events", body), api.send("events", other_order)

    assert "Idempotency-Replayed" not in first
    assert again["Idempotency-Replayed"] == "true"
    assert (again.status_code, again.content) == (202, first.content)
    assert Delivery.objects.count() == Event.objects.count() == 1
    assert AuditEntry.objects.filter(act="event.publish").count() == 1


@pytest.mark.parametrize(
    "changes", [{"type": "order.paid"}, {"data": {"number": 8}}, {"data": {}}, {"data": {"n": 7}}]
)
def test_the_same_key_with_other_content_is_refused(api: Api, changes: dict[str, Any]) -> None:
    first = publish(api, idempotencyKey="k")

    answer = api.post("events", {**ORDER, "idempotencyKey": "k", **changes})

    problem(answer, 409, "idempotency_conflict")
    assert ids(page(api)) == [first["id"]]


def test_another_digit_is_other_content(api: Api) -> None:
    body = '{"type": "a.b", "data": {"x": %s}, "idempotencyKey": "k"}'
    api.send("events", body % "1.10")

    problem(api.send("events", body % "1.1"), 409, "idempotency_conflict")


def test_without_a_key_each_call_is_an_event(api: Api) -> None:
    assert publish(api)["id"] != publish(api)["id"]


def test_a_key_belongs_to_one_organization(scene: Scene, api: Api) -> None:
    stranger = Api.of(new_scene("Strangers"))

    assert publish(api, idempotencyKey="k")["id"] != publish(stranger, idempotencyKey="k")["id"]


@pytest.mark.django_db(transaction=True)
def test_ten_at_once_with_one_key_make_one_event(scene: Scene) -> None:
    scene.another_endpoint("event", event_types=["*"])
    api = Api.of(scene, roles.OPERATOR)

    answers = results(
        race(*[lambda: api.post("events", {**ORDER, "idempotencyKey": "k"}) for _ in range(10)])
    )

    assert {answer.status_code for answer in answers if answer} == {202}
    assert len({answer.content for answer in answers if answer}) == 1
    assert sum("Idempotency-Replayed" not in answer for answer in answers if answer) == 1
    assert Event.objects.count() == Delivery.objects.count() == 1


# --- hops ---------------------------------------------------------------------------------------


class CatchingSender(Sender):
    """Keeps what it is to send."""

    def __init__(self) -> None:
        self.caught: list[Outgoing] = []

    def send(self, outgoing: Outgoing) -> Answer:
        self.caught.append(outgoing)
        return Answer(started=0, finished=0, status_code=200)


def sent_hops(delivery: Delivery) -> str | None:
    """The header of the delivery's next attempt."""
    sender = CatchingSender()
    record(attempts.make(sender, claim(delivery)))
    return sender.caught[0].headers.get("X-Webhook-Hops")


def test_an_event_that_a_delivery_caused_is_one_hop_further(scene: Scene, api: Api) -> None:
    scene.another_endpoint("event", event_types=["*"])
    hops: str | None = None
    for expected in ("0", "1", "2", "3", "4", "5"):
        headers = {} if hops is None else {"HTTP_X_WEBHOOK_HOPS": hops}
        answer = api.send("events", exact_json.dumps(ORDER), **headers)
        hops = sent_hops(Delivery.objects.get(event_id=content(answer)["id"]))
        assert hops == expected

    answer = api.send("events", exact_json.dumps(ORDER), HTTP_X_WEBHOOK_HOPS=hops)

    problem(answer, 409, "too_many_hops")
    assert Event.objects.count() == 6


@pytest.mark.parametrize("header", ["-1", "1.0", "one", "", "١", "9" * 10])
def test_a_header_that_is_no_count_is_refused(api: Api, header: str) -> None:
    answer = api.send("events", exact_json.dumps(ORDER), HTTP_X_WEBHOOK_HOPS=header)

    assert list(problem(answer, 400, "validation_error")["errors"]) == ["X-Webhook-Hops"]


def test_a_command_carries_no_count_of_hops(scene: Scene) -> None:
    command = scene.dispatched()
    assert command.delivery

    assert sent_hops(command.delivery) is None
