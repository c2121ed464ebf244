"""Published events on the console: the newest by type, and one with its body and its deliveries."""

from __future__ import annotations

import pytest
from django.urls import reverse

from organizations import paging
from organizations.provisioning import provision
from tests.factories import Scene, answer, claim, fail_with, new_scene, record
from tests.visitors import Visitor, queries_of
from webhooks import publishing
from webhooks.console.as_sent import SHOWN_BYTES
from webhooks.models import Endpoint, Event

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]

LIST = "/events/"


@pytest.fixture
def receivers(scene: Scene) -> list[Endpoint]:
    """Two endpoints that are told of orders."""
    return [
        scene.another_endpoint("event", name=name, event_types=["order.*"])
        for name in ("Desk", "Lake")
    ]


def page_of(event: Event) -> str:
    return reverse("event", args=[event.pk])


def place_of(event: Event) -> int:
    """Where it stands in the feed, which only the database knows."""
    event.refresh_from_db()
    assert event.place
    return event.place


def test_events_are_listed_with_how_far_they_were_told(
    scene: Scene, receivers: list[Endpoint]
) -> None:
    event = publishing.publish(scene.organization.pk, "order.paid", {}, idempotency_key="paid-17")
    first, second = event.deliveries.order_by("pk")
    record(answer(claim(first), 200))
    fail_with(second, [500, 500, 500])
    scene.published("stock.low")
    page = Visitor(scene.viewer).get(LIST)
    assert "1 delivered 1 failed paid-17" in page.text
    assert "nobody subscribed" in page.text
    assert page.text.index("stock.low") < page.text.index("order.paid")


def test_what_is_no_published_event_is_not_listed(scene: Scene) -> None:
    scene.dispatched()
    addressed = scene.send()
    page = Visitor(scene.viewer)
    assert page.get(LIST).has("empty")
    assert page.get(page_of(addressed.event)).status == 404


@pytest.mark.parametrize(
    ("start", "found"),
    [
        ("", {"order.created", "order.paid", "orders"}),
        ("order.", {"order.created", "order.paid"}),
        ("order.*", {"order.created", "order.paid"}),
        ("order.p", {"order.paid"}),
        ("*", {"order.created", "order.paid", "orders"}),
        ("paid", set()),
    ],
)
def test_the_start_of_a_type_narrows(scene: Scene, start: str, found: set[str]) -> None:
    events = [scene.published(name) for name in ("order.created", "order.paid", "orders")]
    page = Visitor(scene.viewer).get(LIST, type=start)
    assert {event.type for event in events if page.has(f"e-{event.pk}")} == found
    assert page.has("no-match") == (not found)


def test_a_rare_type_is_looked_for_only_so_far(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "LOOKED_AT", 2)
    rare = scene.published("rare.one")
    places = [place_of(scene.published()) for _ in range(3)]
    visitor = Visitor(scene.viewer)
    assert f"type=rare&amp;before={places[1]}" in visitor.get(LIST, type="rare").html
    assert visitor.get(LIST, type="rare", before=str(places[1])).has(f"e-{rare.pk}")


def test_pages_hold_still_while_events_arrive(scene: Scene) -> None:
    events = [scene.published() for _ in range(52)]
    visitor, cursor = Visitor(scene.viewer), str(place_of(events[2]))
    assert f"before={cursor}" in visitor.get(LIST).html
    scene.published()
    page = visitor.poll(LIST, "events-live", before=cursor)
    assert [event for event in events if page.has(f"e-{event.pk}")] == events[:2]


def test_a_poll_without_news_is_empty(scene: Scene, receivers: list[Endpoint]) -> None:
    event, visitor = scene.published(), Visitor(scene.viewer)
    for path, target in ((LIST, "events-live"), (page_of(event), "event-live")):
        revision = visitor.get(path).revision
        assert visitor.poll(path, target, revision).status == 204
        record(answer(claim(event.deliveries.filter(state="pending")[0]), 200))
        news = visitor.poll(path, target, revision)
        assert "delivered" in news.text
        assert "<html" not in news.html


def test_the_list_takes_the_same_queries_for_three_rows_and_thirty(
    scene: Scene, receivers: list[Endpoint]
) -> None:
    visitor = Visitor(scene.viewer)
    for _ in range(3):
        scene.published()
    few = queries_of(lambda: visitor.get(LIST))
    for _ in range(27):
        scene.published()
    assert queries_of(lambda: visitor.get(LIST)) == few


def test_without_any_event_the_page_teaches_how_one_is_told(scene: Scene) -> None:
    page = Visitor(scene.viewer).get(LIST).text
    assert "curl http://testserver/api/events" in page
    assert "events:write" in page


def test_an_event_shows_its_body_and_its_delivery_to_each_endpoint(
    scene: Scene, receivers: list[Endpoint]
) -> None:
    event = scene.published("order.created", note="<script>alert(1)</script>\u202e")
    [first, _] = event.deliveries.order_by("endpoint__name")
    record(answer(claim(first), 200))
    page = Visitor(scene.viewer).get(page_of(event))
    assert page.text.index("Delivered Desk") < page.text.index("Pending Lake")
    assert reverse("delivery", args=[first.pk]) in page.html
    assert event.message_id in page.text
    assert "<script>alert" not in page.html
    assert "\u202e" not in page.html.split('id="body-text"')[0]


def test_an_event_that_nobody_was_told_says_so(scene: Scene) -> None:
    assert "Nobody was told." in Visitor(scene.viewer).get(page_of(scene.published())).text


def test_of_a_large_body_the_start_is_shown(scene: Scene) -> None:
    page = Visitor(scene.viewer).get(page_of(scene.published(note="x" * SHOWN_BYTES)))
    assert "of which the start is shown" in page.text
    assert not page.has("copy-body")


def test_of_many_deliveries_a_page_is_shown_and_the_list_has_all(
    scene: Scene, receivers: list[Endpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    event = scene.published()
    monkeypatch.setattr(paging, "PAGE_SIZE", 1)
    page = Visitor(scene.viewer).get(page_of(event))
    assert page.html.count('<tr id="d-') == 1
    assert f'href="/deliveries/?event={event.pk}"' in page.html
    assert "All 2" in page.text


def test_a_page_takes_the_same_queries_for_two_deliveries_and_twenty(
    scene: Scene, receivers: list[Endpoint]
) -> None:
    visitor = Visitor(scene.viewer)
    few = queries_of(lambda: visitor.get(page_of(scene.published())))
    publish = queries_of(scene.published)
    for _ in range(18):
        scene.another_endpoint("event", event_types=["order.*"])
    event = scene.published()
    assert queries_of(lambda: visitor.get(page_of(event))) == few - publish


def test_nothing_of_another_organization_is_shown(scene: Scene) -> None:
    event, stranger = scene.published(), Visitor(provision("Elsewhere").actor("owner"))
    assert not stranger.get(LIST).has(f"e-{event.pk}")
    assert stranger.get(page_of(event)).status == 404
    assert Visitor(new_scene().viewer).get(page_of(event)).status == 404
