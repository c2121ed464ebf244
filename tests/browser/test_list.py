"""The list of commands, in a browser: filters, keys, the file, and rows that arrive meanwhile."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from commands import lifecycle
from commands.console import export, rows
from commands.console.rows import PAGE_SIZE
from commands.queries import Filters
from organizations.patience import TookTooLong
from tests.browser.conftest import OpenWindow
from tests.factories import Scene

pytestmark = pytest.mark.django_db(transaction=True)


def tokens(page: Page) -> list[str]:
    return page.locator("tbody .token").all_inner_texts()


def focused(page: Page) -> str:
    """The id of what has the focus."""
    found: str = page.evaluate("document.activeElement.id")
    return found


# --- filters --------------------------------------------------------------------------------------


def test_a_rare_filter_becomes_a_chip_that_drops_it(scene: Scene, open_window: OpenWindow) -> None:
    scene.dispatched(token="went-there")
    scene.issued(token="stays-here")
    page = open_window(scene.viewer).page
    page.goto("/commands/")
    page.get_by_text("More filters").click()
    page.get_by_label("Endpoint").select_option(label=scene.endpoint.name)
    expect(page.locator("tbody tr")).to_have_count(1)
    page.wait_for_url(f"**/commands/?endpoint={scene.endpoint.pk}")
    page.keyboard.press("Escape")
    chip = page.get_by_role("link", name=f"Endpoint: {scene.endpoint.name}: drop this filter")
    chip.click()
    expect(page.locator("tbody tr")).to_have_count(2)
    page.wait_for_url("**/commands/")
    expect(chip).to_have_count(0)
    assert page.get_by_label("Endpoint").input_value() == ""
    page.go_back()
    expect(chip).to_be_visible()


def test_each_filter_of_no_match_is_dropped_alone(scene: Scene, open_window: OpenWindow) -> None:
    scene.issued(token="dock")
    page = open_window(scene.viewer).page
    page.goto("/commands/?state=failed&q=dock&within=1h")
    expect(page.locator("#no-match .drop")).to_have_count(3)
    page.get_by_role("link", name="Failed: drop this filter").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    page.wait_for_url("**/commands/?q=dock&within=1h")
    expect(page.get_by_role("radio", name="All")).to_be_checked()


def test_a_search_that_walks_too_long_is_shortened(
    scene: Scene, open_window: OpenWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.issued(token="dock")
    read = rows.page_of

    def slow_without_a_time(organization: Any, filters: Filters, before: Any) -> rows.Page:
        if filters.search and not filters.since:
            raise TookTooLong
        return read(organization, filters, before)

    monkeypatch.setattr(rows, "page_of", slow_without_a_time)
    page = open_window(scene.viewer).page
    page.goto("/commands/")
    page.get_by_label("Client token or id").fill("dock")
    expect(page.get_by_role("heading", name="This would take too long to find")).to_be_visible()
    assert Axe().run(page).violations_count == 0
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.get_by_role("link", name="The last hour").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    assert "/commands/?q=dock&within=1h" in asked[0]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 700, 1280])
def test_the_filters_stay_within_the_window(
    scene: Scene, open_window: OpenWindow, width: int, theme: str
) -> None:
    scene.dispatched()
    page = open_window(scene.viewer, theme=theme, width=width).page
    page.goto(f"/commands/?endpoint={scene.endpoint.pk}&since=2026-01-01T00:00")
    page.get_by_text("More filters").click()
    box = page.locator(".more-filters").bounding_box()
    assert box
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert Axe().run(page).violations_count == 0


# --- keys -----------------------------------------------------------------------------------------


def test_the_list_is_walked_and_opened_by_keys(scene: Scene, open_window: OpenWindow) -> None:
    commands = [scene.issued(token=f"token-{n}") for n in range(3)]
    ids = [f"l-{command.pk}" for command in reversed(commands)]
    page = open_window(scene.viewer).page
    page.goto("/commands/")
    reached = []
    for key in "jjjjkj":
        page.keyboard.press(key)
        reached.append(ids.index(focused(page)))
    assert reached == [0, 1, 2, 2, 1, 2]
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/commands/{commands[1].pk}/")
    page.go_back()
    page.keyboard.press("j")
    assert focused(page) == ids[1]


def test_the_row_keeps_the_keyboard_when_news_arrive(scene: Scene, open_window: OpenWindow) -> None:
    old, older = scene.issued(token="old"), scene.issued(token="older")
    page = open_window(scene.viewer).page
    page.goto("/commands/")
    page.keyboard.press("j")
    assert focused(page) == f"l-{older.pk}"
    scene.issued(token="new")
    lifecycle.retract(scene.operator, older.pk)
    expect(page.locator("tr", has_text="older")).to_contain_text("Retracted")
    assert focused(page) == f"l-{older.pk}"
    page.keyboard.press("j")
    assert focused(page) == f"l-{old.pk}"


def test_the_row_that_the_keyboard_came_to_says_its_absolute_time(
    scene: Scene, open_window: OpenWindow
) -> None:
    scene.issued()
    page = open_window(scene.viewer).page
    page.goto("/commands/")
    page.keyboard.press("j")
    shown = page.locator("tbody time").evaluate(
        "(time) => getComputedStyle(time, '::after').content"
    )
    assert re.fullmatch(r'"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"', shown)


def test_keys_lead_to_the_search_and_out_of_it(scene: Scene, open_window: OpenWindow) -> None:
    command = scene.issued(token="j-k?/")
    page = open_window(scene.viewer).page
    page.goto("/commands/")
    page.keyboard.press("/")
    assert focused(page) == "q"
    # While somebody types, keys are letters.
    page.keyboard.type("j-k?/")
    expect(page.locator("#q")).to_have_value("j-k?/")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.wait_for_url("**/commands/?q=j-k%3F%2F")
    page.keyboard.press("ArrowDown")
    assert focused(page) == f"l-{command.pk}"


def test_the_last_key_of_a_page_leads_to_the_next(scene: Scene, open_window: OpenWindow) -> None:
    for _ in range(PAGE_SIZE + 1):
        scene.issued()
    page = open_window(scene.viewer).page
    page.goto("/commands/")
    for _ in range(PAGE_SIZE + 1):
        page.keyboard.press("j")
    assert focused(page) == "older-link"
    page.keyboard.press("Enter")
    expect(page.locator("tbody tr")).to_have_count(1)


def test_the_keys_are_shown_and_switched_off(scene: Scene, open_window: OpenWindow) -> None:
    scene.issued()
    page = open_window(scene.viewer).page
    page.goto("/commands/")
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keyboard")
    expect(dialog).to_be_visible()
    assert Axe().run(page).violations_count == 0
    page.keyboard.press("j")
    assert not focused(page).startswith("l-")
    page.get_by_label("Use single keys in this browser").uncheck()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    page.reload()
    for key in ("j", "/", "?"):
        page.keyboard.press(key)
    assert focused(page) == ""
    expect(dialog).to_be_hidden()
    page.locator("#person-switch").click()
    page.get_by_role("button", name="Keyboard").click()
    expect(page.get_by_label("Use single keys in this browser")).not_to_be_checked()
    page.keyboard.press("Escape")
    assert focused(page) == "person-switch"


# --- the file -------------------------------------------------------------------------------------


def test_what_is_filtered_is_downloaded(
    scene: Scene, open_window: OpenWindow, tmp_path: Path
) -> None:
    scene.failed(token="=cmd|' /C calc'!A0", name='<img src=x> "quoted", and')
    scene.issued(token="other")
    page = open_window(scene.viewer).page
    page.goto("/commands/")
    page.get_by_role("radio", name="Failed").check(force=True)
    expect(page.locator("tbody tr")).to_have_count(1)
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Export CSV").click()
    file = downloading.value
    assert re.fullmatch(r"commands-\d{8}T\d{6}Z\.csv", file.suggested_filename)
    file.save_as(tmp_path / "commands.csv")
    text = (tmp_path / "commands.csv").read_bytes().decode("utf-8-sig")
    [row] = csv.DictReader(io.StringIO(text, newline=""))
    assert row["clientToken"] == "'=cmd|' /C calc'!A0"
    assert row["name"] == '<img src=x> "quoted", and'
    assert row["state"] == "failed"


def test_a_third_file_at_once_is_asked_to_wait(scene: Scene, open_window: OpenWindow) -> None:
    scene.issued()
    window = open_window(scene.viewer)
    window.forgive("status of 429")
    page = window.page
    page.goto("/commands/?state=logged")
    under_way = [export.lines(scene.organization, Filters()) for _ in range(export.AT_ONCE)]
    for pieces in under_way:
        next(pieces)
    page.get_by_role("button", name="Export CSV").click()
    expect(page.get_by_role("heading", name="Other exports are under way")).to_be_visible()
    assert Axe().run(page).violations_count == 0
    under_way.clear()
    page.get_by_role("link", name="Back to the list").click()
    page.wait_for_url("**/commands/?state=logged")
    with page.expect_download():
        page.get_by_role("button", name="Export CSV").click()


# --- rows that arrive -----------------------------------------------------------------------------


def test_rows_are_read_in_peace_while_others_arrive(scene: Scene, open_window: OpenWindow) -> None:
    for number in range(PAGE_SIZE + 10):
        scene.issued(token=f"old-{number:02}")
    page = open_window(scene.viewer).page
    page.goto("/commands/")
    page.locator("tbody tr", has_text="old-30").hover()
    shown, place = tokens(page), page.evaluate("window.scrollY")
    for number in range(3):
        scene.issued(token=f"new-{number}")
        expect(page.get_by_role("button", name=f"{number + 1} new")).to_be_visible()
        assert tokens(page) == shown
        assert page.evaluate("window.scrollY") == place
    page.get_by_role("button", name="3 new").click()
    expect(page.locator("tbody .token").first).to_have_text("new-2")
    assert tokens(page)[:4] == ["new-2", "new-1", "new-0", "old-59"]
    assert len(tokens(page)) == PAGE_SIZE


def test_no_row_is_skipped_or_shown_twice_from_page_to_page(
    scene: Scene, open_window: OpenWindow
) -> None:
    for number in range(2 * PAGE_SIZE + 5):
        scene.issued(token=f"old-{number:03}")
    page = open_window(scene.viewer).page
    page.goto("/commands/")
    pages = [tokens(page)]
    for number in range(2):
        scene.issued(token=f"new-{number}")
        page.get_by_role("link", name="Older").click()
        expect(page.locator("tbody .token").first).not_to_have_text(pages[-1][0])
        pages.append(tokens(page))
    assert [token for shown in pages for token in shown] == [
        f"old-{number:03}" for number in reversed(range(2 * PAGE_SIZE + 5))
    ]
    # Both came after the first page was read, one of them before this page.
    scene.issued(token="new-2")
    expect(page.locator("#newer-link")).to_have_text(re.compile(r"\d new"))
