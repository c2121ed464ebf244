"""Times in UTC or in the browser's zone: one switch, on every page."""

from __future__ import annotations

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from commands import lifecycle
from tests.browser.conftest import OpenWindow, Window
from tests.factories import Scene, fail_with

pytestmark = pytest.mark.django_db(transaction=True)

IN_UTC = re.compile(r" UTC$")
IN_TOKYO = re.compile(r" UTC\+9 \(Asia/Tokyo\)$")


@pytest.fixture
def in_tokyo(open_window: OpenWindow, scene: Scene) -> Window:
    """Somebody whose browser is in Tokyo."""
    window = open_window(scene.operator)
    session = window.page.context.new_cdp_session(window.page)
    session.send("Emulation.setTimezoneOverride", {"timezoneId": "Asia/Tokyo"})
    return window


def titles(page: Page) -> list[str]:
    """What every time and countdown on the page has at hand."""
    found = page.locator("[data-ago], [data-until]")
    return [title for one in found.all() if (title := one.get_attribute("title"))]


def test_the_switch_holds_on_every_page_and_for_what_arrives(
    scene: Scene, in_tokyo: Window
) -> None:
    command, page = scene.dispatched(token="old"), in_tokyo.page
    fail_with(command, [503])
    page.goto("/commands/")
    assert all(IN_UTC.search(title) for title in titles(page))
    page.get_by_role("button", name="Times are in UTC.").click()
    switch = page.get_by_role("button", name="Times are in Asia/Tokyo. Show them in UTC.")
    expect(switch).to_be_focused()
    assert Axe().run(page).violations_count == 0
    scene.issued(token="new")
    expect(page.locator("tr", has_text="new").locator("time")).to_have_attribute("title", IN_TOKYO)
    for path in ("/commands/", f"/commands/{command.pk}/", f"/endpoints/{scene.endpoint.pk}/"):
        page.goto(path)
        assert titles(page)
        assert all(IN_TOKYO.search(title) for title in titles(page)), path
    page.goto(f"/commands/{command.pk}/")
    expect(page.locator("#now-panel")).to_contain_text(re.compile(r"due at \S+ \S+ UTC\+9"))
    lifecycle.retract(scene.operator, command.pk)
    expect(page.locator("#state")).to_have_text("Retracted")
    assert all(IN_TOKYO.search(title) for title in titles(page))
    switch.click()
    expect(page.get_by_role("button", name="Times are in UTC.")).to_be_focused()
    assert all(IN_UTC.search(title) for title in titles(page))


def test_clocks_that_the_page_writes_itself_follow_the_switch(
    scene: Scene, in_tokyo: Window
) -> None:
    command, page = scene.issued(), in_tokyo.page
    page.goto(f"/commands/{command.pk}/dispatch/")
    deadline = page.locator("[data-clock-after]")
    expect(deadline).to_have_text(re.compile(r"^\d\d:\d\d:\d\d UTC$"))
    page.locator("#zone").click()
    expect(deadline).to_have_text(re.compile(r"^\d\d:\d\d:\d\d UTC\+9$"))


def test_a_time_to_filter_by_is_read_in_the_zone_that_is_shown(
    scene: Scene, in_tokyo: Window
) -> None:
    scene.issued(token="mine")
    page = in_tokyo.page
    page.goto("/commands/?since=2026-01-31T12:00")
    page.locator("#zone").click()
    expect(page.locator("#since")).to_have_value("2026-01-31T21:00")
    expect(page.locator(".in-force")).to_contain_text("Since 2026-01-31 21:00:00 UTC+9")
    page.get_by_text("More filters").click()
    page.locator("#since").fill("2026-01-31T22:00")
    page.wait_for_url("**/commands/?since=2026-01-31T22%3A00&zone=Asia%2FTokyo")
    page.locator("#zone").click()
    expect(page.locator("#since")).to_have_value("2026-01-31T13:00")


def test_what_somebody_typed_is_not_lost_by_the_switch(scene: Scene, in_tokyo: Window) -> None:
    page = in_tokyo.page
    page.goto("/commands/new/")
    page.get_by_label("Name").fill("set_heading")
    page.locator("#zone").click()
    expect(page.get_by_role("status")).to_have_text(
        "Times are in Asia/Tokyo from the next page on."
    )
    expect(page.get_by_label("Name")).to_have_value("set_heading")
    page.goto("/commands/")
    expect(page.locator("#zone")).to_contain_text("Local")


def test_a_browser_in_utc_has_nothing_to_switch(scene: Scene, open_window: OpenWindow) -> None:
    window = open_window(scene.viewer)
    session = window.page.context.new_cdp_session(window.page)
    session.send("Emulation.setTimezoneOverride", {"timezoneId": "UTC"})
    window.page.goto("/commands/")
    window.page.locator("#zone").click()
    expect(window.page.get_by_role("status")).to_have_text("The time zone of this browser is UTC.")
