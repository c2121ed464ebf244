"""Deliveries on the console: the newest, narrowed; and the page of one that is no command's."""

from __future__ import annotations

import pytest
from django.urls import reverse

from organizations import paging
from organizations.provisioning import provision
from tests.factories import Scene, answer, claim, fail_with, new_scene, record
from tests.visitors import Page, Visitor, queries_of
from webhooks import endpoints
from webhooks.console import deliveries as shown
from webhooks.models import Delivery, Endpoint

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]

LIST = "/deliveries/"


@pytest.fixture
def receiver(scene: Scene) -> Endpoint:
    """An endpoint that is told of every event."""
    return scene.another_endpoint("event", name="Order desk", event_types=["order.*"])


@pytest.fixture
def told(scene: Scene, receiver: Endpoint) -> Delivery:
    """The delivery of an event."""
    return scene.published("order.created", order=17).deliveries.get()


def page_of(delivery: Delivery) -> str:
    return reverse("delivery", args=[delivery.pk])


def rows(page: Page, *deliveries: Delivery | None) -> list[Delivery | None]:
    """Which of these the page shows."""
    return [one for one in deliveries if one and page.has(f"d-{one.pk}")]


# --- the list ------------------------------------------------------------------------------------


def test_a_row_says_how_it_stands_and_what_comes_next(scene: Scene, told: Delivery) -> None:
    fail_with(told, [503])
    page = Visitor(scene.viewer).get(LIST)
    assert "Pending order.created" in page.text
    assert "Order desk event 1/3 attempt 2" in page.text
    assert "data-until=" in page.html
    fail_with(told, [503, 503])
    assert "3/3 attempts exhausted" in Visitor(scene.viewer).get(LIST).text


def test_a_row_leads_to_the_command_or_to_the_delivery(scene: Scene, told: Delivery) -> None:
    command = scene.dispatched()
    page = Visitor(scene.viewer).get(LIST)
    assert f'href="{page_of(told)}"' in page.html
    assert f'href="{reverse("command", args=[command.pk])}"' in page.html


def test_filters_narrow_together(scene: Scene, told: Delivery, receiver: Endpoint) -> None:
    command, ping = scene.failed().delivery, endpoints.ping(scene.owner, scene.endpoint.pk)
    visitor = Visitor(scene.viewer)
    found = {
        (): [told, command, ping],
        (("state", "failed"),): [command],
        (("state", "pending"),): [told, ping],
        (("policy", "event"),): [told],
        (("carries", "commands"),): [command],
        (("carries", "events"),): [told],
        (("carries", "pings"),): [ping],
        (("endpoint", str(receiver.pk)),): [told],
        (("endpoint", str(scene.endpoint.pk)), ("state", "pending")): [ping],
        (("event", str(told.event_id)),): [told],
        (("state", "cancelled"),): [],
    }
    for query, expected in found.items():
        page = visitor.get(LIST, **dict(query))
        assert rows(page, told, command, ping) == expected, query
        assert page.has("clear-filters") == (not expected)


def test_a_filter_that_is_none_narrows_nothing_and_says_so(scene: Scene, told: Delivery) -> None:
    page = Visitor(scene.viewer).get(LIST, state="perhaps", endpoint="nobody")
    assert rows(page, told) == [told]
    assert "not understood: state" in page.text
    assert "not understood: endpoint" in page.text


def test_a_few_pending_ones_are_found_wherever_they_are(
    scene: Scene, told: Delivery, monkeypatch: pytest.MonkeyPatch
) -> None:
    flying = scene.send()
    claim(flying)
    for _ in range(4):
        scene.delivered()
    monkeypatch.setattr(paging, "LOOKED_AT", 2)
    visitor = Visitor(scene.viewer)
    assert rows(visitor.get(LIST, state="pending"), told, flying) == [told, flying]
    monkeypatch.setattr(shown, "PENDING_AT_MOST", 1)
    many = visitor.get(LIST, state="pending")
    assert rows(many, told, flying) == []
    assert "Looked at 2 deliveries" in many.text


def test_pages_hold_still_while_deliveries_arrive(scene: Scene) -> None:
    old = [scene.send() for _ in range(52)]
    visitor = Visitor(scene.viewer)
    first = visitor.get(LIST)
    assert f"before={old[2].pk}" in first.html
    second = visitor.get(LIST, before=str(old[2].pk))
    new = scene.send()
    polled = visitor.poll(LIST, "deliveries-live", before=str(old[2].pk))
    for page in (second, polled):
        assert rows(page, *old, new) == old[:2]
        assert page.has("newest")


def test_a_poll_without_news_is_empty_and_one_with_news_the_rows_alone(
    scene: Scene, told: Delivery
) -> None:
    visitor = Visitor(scene.viewer)
    revision = visitor.get(LIST).revision
    assert visitor.poll(LIST, "deliveries-live", revision).status == 204
    record(answer(claim(told), 200))
    news = visitor.poll(LIST, "deliveries-live", revision)
    assert "Delivered order.created" in news.text
    assert "<html" not in news.html


def test_the_list_takes_the_same_queries_for_three_rows_and_thirty(scene: Scene) -> None:
    visitor = Visitor(scene.viewer)

    def taken() -> tuple[int, int]:
        return (
            queries_of(lambda: visitor.get(LIST)),
            queries_of(lambda: visitor.get(LIST, state="pending")),
        )

    for _ in range(3):
        scene.send()
    few = taken()
    for _ in range(14):
        scene.send()
        scene.delivered()
    assert taken() == few


def test_without_any_delivery_the_page_says_what_makes_one(scene: Scene) -> None:
    assert "A dispatched command is delivered" in Visitor(scene.viewer).get(LIST).text


def test_nothing_of_another_organization_is_listed(scene: Scene, told: Delivery) -> None:
    stranger = Visitor(provision("Elsewhere").actor("owner"))
    for query in ({}, {"event": str(told.event_id)}, {"endpoint": str(told.endpoint_id)}):
        page = stranger.get(LIST, **query)
        assert rows(page, told) == []
        assert "Order desk" not in page.text


# --- one delivery --------------------------------------------------------------------------------


def test_a_delivery_shows_its_schedule_its_attempts_and_why(scene: Scene, told: Delivery) -> None:
    record(answer(claim(told), 503, response_excerpt=b"<h1>down</h1>", duration_ms=43))
    page = Visitor(scene.viewer).get(page_of(told))
    assert "Attempt 2 of 3 follows: attempt 1 was answered with 503." in page.text
    assert "Attempt 1: 503, started" in page.html
    assert 'class="marker planned"' in page.html
    assert "deadline" not in page.text
    assert "1 503 error 43 ms" in page.text
    assert "<h1>down" not in page.html
    assert f'href="{reverse("event", args=[told.event_id])}"' in page.html


def test_what_was_sent_is_shown_without_what_signs_it(scene: Scene, told: Delivery) -> None:
    page = Visitor(scene.viewer).get(page_of(told))
    assert '"order": 17' in page.text
    assert "webhook-signature (not shown)" in page.text
    assert "curl -X POST" in page.text
    assert "whsec_" not in page.html


def test_a_ping_says_that_it_is_one(scene: Scene) -> None:
    ping = endpoints.ping(scene.owner, scene.endpoint.pk)
    record(answer(claim(ping), 500))
    page = Visitor(scene.viewer).get(page_of(ping)).text
    assert "a ping, which counts for no rule" in page
    assert "The only attempt was answered with 500." in page


def test_a_command_s_delivery_is_shown_on_its_command_s_page(scene: Scene) -> None:
    command = scene.dispatched()
    assert command.delivery
    answered = Visitor(scene.viewer).get(page_of(command.delivery))
    assert answered.to == reverse("command", args=[command.pk])


def test_a_poll_brings_the_live_part_once(scene: Scene, told: Delivery) -> None:
    visitor, path = Visitor(scene.viewer), page_of(told)
    revision = visitor.get(path).revision
    assert visitor.poll(path, "delivery-live", revision).status == 204
    attempt = claim(told)
    flies = visitor.poll(path, "delivery-live", revision)
    assert "Attempt 1 of 3 is on the wire." in flies.text
    record(answer(attempt, 204))
    assert "answered with 204" in visitor.poll(path, "delivery-live", flies.revision).text


def test_a_page_takes_the_same_queries_for_one_attempt_and_three(
    scene: Scene, told: Delivery
) -> None:
    visitor = Visitor(scene.viewer)
    fail_with(told, [500])
    few = queries_of(lambda: visitor.get(page_of(told)))
    fail_with(told, [500, 500])
    assert queries_of(lambda: visitor.get(page_of(told))) == few


def test_another_organization_s_delivery_is_not_found(scene: Scene) -> None:
    theirs = new_scene().send()
    assert Visitor(scene.owner).get(page_of(theirs)).status == 404
