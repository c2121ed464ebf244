"""Deliveries, events and an endpoint's attempts in a browser: narrowed, watched live, read."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from organizations.provisioning import provision
from tests.browser.conftest import OpenWindow
from tests.browser.test_appearance import faults_of
from tests.factories import Scene, answer, claim, fail_with, record
from webhooks.models import Delivery, Endpoint

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def receiver(scene: Scene) -> Endpoint:
    """An endpoint that is told of orders, with a header of its owner's."""
    wanted = {"event_types": ["order.*"], "headers": {"Authorization": "Bearer secret"}}
    return scene.another_endpoint("event", name="Order desk", **wanted)


@pytest.fixture
def told(scene: Scene, receiver: Endpoint) -> Delivery:
    """A delivery of an event that failed once and waits."""
    delivery = scene.published("order.created", order=17).deliveries.get()
    facts: dict[str, Any] = {"response_excerpt": b"<h1>out of order</h1>", "duration_ms": 1250}
    record(answer(claim(delivery), 503, retry_after="120", **facts))
    return delivery


def narrow(page: Page, word: str) -> None:
    """Choose a tab by keyboard, as somebody without a mouse does."""
    page.get_by_role("radio", name=word, exact=True).focus()
    page.keyboard.press("Space")


def test_every_page_in_both_themes(
    scene: Scene, open_window: OpenWindow, told: Delivery, receiver: Endpoint
) -> None:
    failed = scene.published("order.paid").deliveries.get()
    fail_with(failed, [500, 502, 404])
    scene.published("nobody.subscribed")
    scene.delivered()
    page = open_window(scene.owner).page
    paths = [
        "/deliveries/",
        "/deliveries/?state=cancelled&policy=nonsense",
        f"/deliveries/?event={told.event_id}",
        f"/deliveries/{told.pk}/",
        f"/deliveries/{failed.pk}/",
        "/events/",
        "/events/?type=nothing-like-it",
        f"/events/{told.event_id}/",
        f"/endpoints/{receiver.pk}/?outcome=retry",
        f"/endpoints/{receiver.pk}/?outcome=lost",
        f"/endpoints/{receiver.pk}/edit/",
    ]
    assert not [fault for path in paths for fault in faults_of(page, path)]


def test_empty_lists_in_both_themes(scene: Scene, open_window: OpenWindow) -> None:
    page = open_window(provision("Nothing yet").actor("owner")).page
    assert not [fault for path in ("/deliveries/", "/events/") for fault in faults_of(page, path)]


def test_deliveries_are_narrowed_and_change_before_one_s_eyes(
    scene: Scene, open_window: OpenWindow, told: Delivery
) -> None:
    page = open_window(scene.viewer).page
    page.goto("/deliveries/")
    narrow(page, "Pending")
    expect(page).to_have_url(re.compile(r"/deliveries/\?state=pending$"))
    row = page.locator(f"#d-{told.pk}")
    expect(row).to_contain_text("1/3")
    record(answer(claim(told), 200))
    expect(row).to_have_count(0)
    narrow(page, "All")
    expect(row).to_contain_text("Delivered")
    page.go_back()
    expect(page.locator("#no-match")).to_be_visible()


def test_a_delivery_is_watched_until_it_arrives(
    scene: Scene, open_window: OpenWindow, told: Delivery
) -> None:
    page = open_window(scene.viewer).page
    page.goto(f"/deliveries/{told.pk}/")
    expect(page.get_by_role("timer")).to_be_visible()
    page.locator("#answer-1-open").press("Enter")
    expect(page.locator("#attempt-1 pre")).to_have_text("<h1>out of order</h1>")
    record(answer(claim(told), 200))
    expect(page.locator("#state")).to_have_text("Delivered")
    expect(page.get_by_role("status")).to_have_text("order.created is delivered")
    expect(page.get_by_role("timer")).to_have_count(0)
    # What somebody opened to read is still open.
    expect(page.locator("#attempt-1 pre")).to_be_visible()


def test_an_endpoint_s_attempts_are_narrowed_while_the_page_stays_live(
    scene: Scene, open_window: OpenWindow, told: Delivery, receiver: Endpoint
) -> None:
    page = open_window(scene.viewer).page
    page.goto(f"/endpoints/{receiver.pk}/")
    narrow(page, "Retry")
    expect(page).to_have_url(re.compile(r"\?outcome=retry$"))
    expect(page.locator("#outcome-retry")).to_be_focused()
    page.locator(".attempt-answer summary").click()
    expect(page.locator(".attempt-answer pre")).to_have_text("<h1>out of order</h1>")
    fail_with(told, [500])
    expect(page.locator("#endpoint-attempts-body tr")).to_have_count(2)
    expect(page.locator(".attempt-answer pre")).to_be_visible()
    record(answer(claim(told), 200))
    expect(page.locator("#health")).to_contain_text("The last one was delivered")
    expect(page.locator("#endpoint-attempts-body tr")).to_have_count(2)
    page.get_by_role("link", name="order.created").first.click()
    expect(page.locator("#state")).to_have_text("Delivered")


def test_an_event_is_found_by_the_start_of_its_type(
    scene: Scene, open_window: OpenWindow, told: Delivery
) -> None:
    other = scene.published("stock.low")
    page = open_window(scene.viewer).page
    page.goto("/events/")
    page.get_by_label("The start of a type").fill("order.")
    expect(page).to_have_url(re.compile(r"\?type=order\.$"))
    expect(page.locator(f"#e-{other.pk}")).to_have_count(0)
    expect(page.get_by_label("The start of a type")).to_be_focused()
    page.get_by_role("link", name="order.created").click()
    expect(page.get_by_role("heading", name="order.created")).to_be_visible()
    record(answer(claim(told), 200))
    expect(page.locator(f"#d-{told.pk}")).to_contain_text("Delivered")
    page.get_by_role("link", name="Order desk").click()
    expect(page.locator("#state")).to_have_text("Delivered")


def test_an_owner_picks_what_an_endpoint_is_told_and_writes_its_headers(
    scene: Scene, open_window: OpenWindow, receiver: Endpoint
) -> None:
    page = open_window(scene.owner).page
    page.goto(f"/endpoints/{receiver.pk}/")
    page.get_by_role("link", name="Edit…").click()
    headers = page.get_by_label("Headers")
    expect(headers).to_have_value("Authorization: ••••••••")
    headers.fill("Authorization: ••••••••\nX-Tenant: north")
    page.get_by_label("command.failed").check()
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#told")).to_contain_text("command.failed")
    expect(page.locator("#told")).to_contain_text("Every type that begins with order.")
    expect(page.locator("#endpoint-head")).to_contain_text("Authorization, X-Tenant")
    assert "north" not in page.content()
