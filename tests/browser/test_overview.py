"""The overview on a wall, and the ways through the console where the window is narrow."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from commands.rules.states import State
from organizations.clock import database_now
from tests.browser.conftest import OpenWindow
from tests.factories import Scene, answer, claim, fail_with, record
from webhooks import endpoints
from webhooks.models import Heartbeat

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def workers(scene: Scene) -> None:
    """Workers that are alive, for as long as a test takes."""
    soon = database_now() + timedelta(minutes=10)
    Heartbeat.objects.create(cluster="pool", host="delivery-1", beat_at=soon)


def test_it_changes_from_all_clear_to_what_needs_a_person_and_back(
    scene: Scene, open_window: OpenWindow
) -> None:
    scene.issued()
    page = open_window(scene.owner).page
    page.goto("/overview/")
    expect(page.get_by_text("Nothing needs a person.", exact=True)).to_be_visible()
    endpoint = scene.another_endpoint(name="Harbour relay")
    endpoints.disable(scene.owner, endpoint.pk, "Moving to the new cluster")
    band = page.get_by_role("region", name="Endpoints disabled")
    expect(band).to_contain_text("Moving to the new cluster")
    expect(page.locator("#status")).to_have_text("Needs a person: endpoints disabled.")
    endpoints.archive(scene.owner, endpoint.pk)
    expect(page.locator("#all-clear")).to_be_visible()
    expect(band).to_have_count(0)


def test_the_focus_stays_on_a_link_while_others_come(scene: Scene, open_window: OpenWindow) -> None:
    command, page = scene.in_state(State.TIMED_OUT), open_window(scene.operator).page
    page.goto("/overview/")
    mine = page.locator(f"#l-timed-out-{command.pk}")
    mine.focus()
    scene.in_state(State.TIMED_OUT)
    expect(page.locator("#i-timed-out li")).to_have_count(2)
    expect(mine).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/commands/{command.pk}/$"))


def test_the_numbers_of_the_charts_stay_open_while_they_change(
    scene: Scene, open_window: OpenWindow
) -> None:
    page = open_window(scene.viewer).page
    page.goto("/overview/")
    page.get_by_text("By the minute", exact=True).click()
    expect(page.get_by_role("region", name="By the minute")).to_be_visible()
    record(answer(claim(scene.send()), 200))
    expect(page.locator("#pace")).to_contain_text("of 1 attempt")
    expect(page.get_by_role("region", name="By the minute")).to_be_visible()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_full_overview_is_accessible(scene: Scene, open_window: OpenWindow, theme: str) -> None:
    for state in State:
        scene.in_state(state)
    fail_with(scene.send(scene.another_endpoint()), [503] * 3)
    disabled = scene.another_endpoint()
    endpoints.disable(scene.owner, disabled.pk, "Moving")
    ago = database_now() - timedelta(minutes=3)
    Heartbeat.objects.create(cluster="gone", host="delivery-2", beat_at=ago)
    page = open_window(scene.owner, theme=theme).page
    page.goto("/overview/")
    page.get_by_text("By the minute", exact=True).click()
    found = Axe().run(page)
    assert not found.violations_count, found.generate_report()


def test_a_narrow_window_has_the_ways_behind_a_menu_for_keys_too(
    scene: Scene, open_window: OpenWindow
) -> None:
    page = open_window(scene.owner, width=360).page
    page.goto("/overview/")
    menu = page.get_by_role("button", name="Menu")
    ways = page.get_by_role("navigation", name="Console")
    expect(ways).to_be_hidden()
    menu.press("Enter")
    expect(ways.get_by_role("link")).to_have_count(9)
    assert Axe().run(page).violations_count == 0
    page.keyboard.press("Escape")
    expect(ways).to_be_hidden()
    expect(menu).to_be_focused()
    menu.press("Enter")
    page.keyboard.press("Tab")
    expect(ways.get_by_role("link", name="Overview")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Commands", level=1)).to_be_visible()


def test_a_wide_window_shows_the_ways_at_once(scene: Scene, open_window: OpenWindow) -> None:
    page = open_window(scene.owner).page
    page.goto("/overview/")
    expect(page.get_by_role("button", name="Menu")).to_be_hidden()
    expect(page.get_by_role("navigation", name="Console").get_by_role("link")).to_have_count(9)
