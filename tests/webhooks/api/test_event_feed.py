"""GET /api/events: oldest first, from a cursor or an event, within one organization."""

from __future__ import annotations

import pytest

from organizations import exact_json
from organizations.rules import roles
from tests.factories import Scene, new_scene
from tests.organizations.api.client import Api, content, problem
from tests.webhooks.api.publishing import ids, page, publish
from webhooks import feed
from webhooks.rules.event_types import CATALOGUE


@pytest.fixture
def api(scene: Scene) -> Api:
    return Api.of(scene, roles.OPERATOR)


def test_an_item_is_what_its_subscribers_receive(scene: Scene, api: Api) -> None:
    event = scene.published(price=exact_json.loads("1.10"))

    assert bytes(event.body) in api.get("events").content
    assert page(api)["items"] == [event.value]


def test_a_poller_gets_each_event_once_oldest_first(scene: Scene, api: Api) -> None:
    made = [publish(api)["id"] for _ in range(5)]

    first = page(api, limit=3)
    second = page(api, limit=3, after=first["nextCursor"])
    third = page(api, after=second["nextCursor"])
    late = publish(api)["id"]

    assert [ids(first), ids(second), ids(third)] == [made[:3], made[3:], []]
    assert ids(page(api, after=third["nextCursor"])) == [late]


def test_an_empty_feed_has_a_cursor_too(api: Api) -> None:
    cursor = page(api)["nextCursor"]
    made = publish(api)["id"]

    assert ids(page(api, after=cursor)) == [made]


def test_one_reads_on_after_an_event_by_its_id(api: Api) -> None:
    made = [publish(api)["id"] for _ in range(3)]

    assert ids(page(api, after=made[0])) == made[1:]


def test_events_are_read_by_type(scene: Scene, api: Api) -> None:
    scene.delivered()
    made = publish(api)["id"]

    assert ids(page(api, type="order.created")) == [made]
    assert ids(page(api, type="order.*")) == [made]
    assert [item["type"] for item in page(api, type="command.*")["items"]] == ["command.delivered"]
    assert ids(page(api, type="nothing.like.it")) == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"type": "Order"}, "type"),
        ({"type": "*.created"}, "type"),
        ({"after": "nonsense"}, "after"),
        ({"after": "00000000-0000-7000-8000-000000000000"}, "after"),
        ({"limit": "0"}, "limit"),
        ({"limit": "201"}, "limit"),
        ({"cursor": "x"}, "cursor"),
    ],
)
def test_a_query_that_means_nothing_is_refused(api: Api, query: dict[str, str], field: str) -> None:
    told = problem(api.get("events", **query), 400, "validation_error")

    assert list(told["errors"]) == [field]


def test_another_organization_s_events_and_cursors_mean_nothing(scene: Scene, api: Api) -> None:
    made = publish(api)["id"]
    cursor = page(api)["nextCursor"]
    stranger = Api.of(new_scene("Strangers"))

    assert page(stranger)["items"] == []
    for after in (made, cursor):
        problem(stranger.get("events", after=after), 400, "validation_error")
    problem(stranger.get(f"events/{made}"), 404, "not_found")


def test_a_cursor_from_before_an_older_backup_was_restored_is_refused(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(api)
    cursor = page(api)["nextCursor"]
    monkeypatch.setattr(feed, "_next_place", lambda: 1)

    told = problem(api.get("events", after=cursor), 400, "validation_error")

    assert list(told["errors"]) == ["after"]


def test_an_event_for_one_endpoint_is_in_no_list(scene: Scene, api: Api) -> None:
    delivery = scene.send()

    assert page(api)["items"] == []
    problem(api.get(f"events/{delivery.event_id}"), 404, "not_found")
    problem(api.get("events", after=str(delivery.event_id)), 400, "validation_error")


def test_one_event_says_what_became_of_it(scene: Scene, api: Api) -> None:
    scene.another_endpoint("event", event_types=["*"])
    taken = publish(api, idempotencyKey="k")

    shown = content(api.get(f"events/{taken['id']}"))

    assert shown == {
        **page(api)["items"][0],
        "createdAt": taken["createdAt"],
        "idempotencyKey": "k",
        "hops": 0,
        "deliveries": 1,
    }


def test_the_types_that_the_console_sends_are_listed(api: Api) -> None:
    listed = content(api.get("events/types"))["items"]

    assert [one["type"] for one in listed] == [one.name for one in CATALOGUE]
    assert all(one["description"] for one in listed)
    assert {one["type"] for one in listed if not one["subscribable"]} == {
        "ping",
        "command.dispatch",
    }
