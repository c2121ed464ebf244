"""Pages that stay true by themselves, disturb nobody, and say when they cannot."""

from __future__ import annotations

import re

import pytest
from django.contrib.sessions.models import Session
from playwright.sync_api import expect

from commands import lifecycle
from commands.console.rows import PAGE_SIZE
from commands.rules.reports import Outcome
from tests.browser.conftest import OpenWindow
from tests.browser.mortal import mortal_server
from tests.factories import Scene, answer, claim, fail_with, record

pytestmark = pytest.mark.django_db(transaction=True)


def test_rows_arrive_and_change_by_themselves(scene: Scene, open_window: OpenWindow) -> None:
    page = open_window(scene.viewer).page
    page.goto("/commands/")
    expect(page.locator("#empty")).to_be_visible()
    command = scene.dispatched(token="first")
    expect(page.locator("tr", has_text="first")).to_contain_text("Queued")
    lifecycle.retract(scene.operator, command.pk)
    expect(page.locator("tr", has_text="first")).to_contain_text("Retracted")


def test_new_rows_wait_while_somebody_points_at_the_table(
    scene: Scene, open_window: OpenWindow
) -> None:
    old, page = scene.issued(token="old-one"), open_window(scene.viewer).page
    page.goto("/commands/")
    page.locator("tr", has_text="old-one").hover()
    scene.issued(token="new-one")
    lifecycle.retract(scene.operator, old.pk)
    chip = page.get_by_role("button", name="1 new")
    expect(chip).to_be_visible()
    expect(page.locator("tr", has_text="old-one")).to_contain_text("Retracted")
    expect(page.locator("tr", has_text="new-one")).to_have_count(0)
    chip.click()
    expect(page.locator("tbody tr").first).to_contain_text("new-one")
    expect(chip).to_be_hidden()


def test_a_later_page_holds_still_and_leads_to_what_is_new(
    scene: Scene, open_window: OpenWindow
) -> None:
    for number in range(PAGE_SIZE + 1):
        scene.issued(token=f"old-{number:02}")
    page = open_window(scene.viewer).page
    page.goto("/commands/")
    page.get_by_role("link", name="Older").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    scene.issued(token="newcomer")
    page.get_by_role("link", name="1 new").click()
    expect(page.locator("tbody tr").first).to_contain_text("newcomer")


def test_focus_stays_where_it_is_when_news_arrive(scene: Scene, open_window: OpenWindow) -> None:
    command = scene.dispatched()
    page = open_window(scene.operator).page
    page.goto(f"/commands/{command.pk}/")
    page.locator("#retract").focus()
    fail_with(command, [503])
    expect(page.locator("#attempt-1")).to_contain_text("503")
    expect(page.locator("#retract")).to_be_focused()
    lifecycle.retract(scene.owner, command.pk)
    expect(page.locator("#state")).to_have_text("Retracted")
    expect(page.locator("#retract")).to_be_focused()
    expect(page.locator("#retract-why")).to_be_visible()


def test_an_open_answer_stays_open_when_news_arrive(scene: Scene, open_window: OpenWindow) -> None:
    command = scene.dispatched()
    record(answer(claim(command), 503, response_excerpt=b"<b>out of order</b>"))
    page = open_window(scene.operator).page
    page.goto(f"/commands/{command.pk}/")
    page.locator("#answer-1-open").click()
    expect(page.locator("#answer-1 pre")).to_have_text("<b>out of order</b>")
    fail_with(command, [500])
    expect(page.locator("#attempt-2")).to_contain_text("500")
    expect(page.locator("#answer-1 pre")).to_be_visible()


def test_a_paused_page_asks_for_nothing_until_it_goes_on(
    scene: Scene, open_window: OpenWindow
) -> None:
    page = open_window(scene.viewer).page
    page.clock.install()
    page.goto("/commands/")
    page.get_by_role("button", name="Live").click()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    scene.issued(token="meanwhile")
    page.clock.run_for(20_000)
    assert asked == []
    page.get_by_role("button", name="Paused").click()
    expect(page.locator("tr", has_text="meanwhile")).to_be_visible()
    with page.expect_request("**/commands/"):
        page.clock.run_for(4_000)


def test_a_hidden_tab_asks_for_nothing_and_catches_up_when_seen(
    scene: Scene, open_window: OpenWindow
) -> None:
    page = open_window(scene.viewer).page
    page.clock.install()
    page.goto("/commands/")
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    scene.issued(token="meanwhile")
    page.clock.run_for(20_000)
    assert asked == []
    page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator("tr", has_text="meanwhile")).to_be_visible()


def test_a_server_that_dies_raises_the_banner_and_stops_the_clocks(
    scene: Scene, open_window: OpenWindow
) -> None:
    command = scene.dispatched()
    fail_with(command, [503, 500])
    with mortal_server() as server:
        window = open_window(scene.viewer, at=server.url)
        window.forgive("ERR_CONNECTION|ERR_EMPTY|htmx:")
        page = window.page
        page.goto(f"/commands/{command.pk}/")
        expect(page.locator("#stale")).to_be_hidden()
        server.die()
        expect(page.locator("#stale")).to_contain_text("Connection lost.")
        expect(page.get_by_role("button", name="Stale")).to_be_visible()
        deadline = page.get_by_role("timer").last
        frozen = deadline.inner_text()
        page.wait_for_function(
            "(then) => Date.now() > then + 1500", arg=page.evaluate("Date.now()")
        )
        assert deadline.inner_text() == frozen


def test_a_lost_connection_that_comes_back_takes_the_banner_down(
    scene: Scene, open_window: OpenWindow
) -> None:
    window = open_window(scene.viewer)
    window.forgive("ERR_INTERNET_DISCONNECTED|htmx:")
    page = window.page
    page.goto("/commands/")
    page.context.set_offline(True)
    expect(page.locator("#stale")).to_be_visible()
    page.context.set_offline(False)
    expect(page.locator("#stale")).to_be_hidden()


def test_an_expired_session_leads_to_login_and_back_to_the_page(
    scene: Scene, open_window: OpenWindow
) -> None:
    page = open_window(scene.viewer).page
    page.goto("/commands/?state=failed")
    Session.objects.all().delete()
    page.wait_for_url(re.compile(r"/accounts/login/\?next=/commands/%3Fstate%3Dfailed$"))
    expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    expect(page.locator("table")).to_have_count(0)


def test_filters_stand_in_the_address_and_back_restores_them(
    scene: Scene, open_window: OpenWindow
) -> None:
    scene.issued(token="dock-1")
    scene.failed(token="undock-1")
    page = open_window(scene.viewer).page
    page.goto("/commands/")
    page.get_by_role("radio", name="Failed").check(force=True)
    expect(page.locator("tbody tr")).to_have_count(1)
    page.wait_for_url("**/commands/?state=failed")
    search = page.get_by_label("Client token or id")
    search.press_sequentially("undock")
    page.wait_for_url("**/commands/?state=failed&q=undock")
    expect(search).to_be_focused()
    page.reload()
    expect(search).to_have_value("undock")
    search.fill("nothing like it")
    page.get_by_role("link", name="Clear the filters").click()
    expect(page.locator("tbody tr")).to_have_count(2)
    page.go_back()
    expect(page.locator("#no-match")).to_be_visible()
    expect(search).to_have_value("nothing like it")
    page.go_back()
    expect(search).to_have_value("undock")
    expect(page.locator("tbody tr")).to_have_count(1)


def test_the_first_news_leave_alone_what_did_not_change(
    scene: Scene, open_window: OpenWindow
) -> None:
    command = scene.dispatched()
    page = open_window(scene.operator).page
    page.goto(f"/commands/{command.pk}/")
    page.evaluate("document.querySelector('#timeline-list').firstElementChild.mine = true")
    fail_with(command, [503])
    expect(page.locator("#attempt-1")).to_contain_text("503")
    assert page.evaluate("document.querySelector('#timeline-list').firstElementChild.mine")


PLACES = """(ids) => ids.map((id) => {
  const { x, y } = document.getElementById(id).getBoundingClientRect();
  return [id, Math.round(x), Math.round(y)];
})"""


def test_nothing_moves_when_a_command_is_dispatched_fails_once_and_is_acked(
    scene: Scene, open_window: OpenWindow
) -> None:
    command = scene.issued()
    page = open_window(scene.operator).page
    page.goto(f"/commands/{command.pk}/")
    above = ["command-head", "retract", "now-panel", "schedule", "columns"]
    logged = page.evaluate(PLACES, above)
    command = lifecycle.dispatch(scene.operator, command.pk)
    expect(page.locator("#state")).to_have_text("Queued")
    assert page.evaluate(PLACES, above) == logged
    queued = page.evaluate(PLACES, [*above, "sent"])
    fail_with(command, [503])
    expect(page.locator("#attempt-1")).to_contain_text("503")
    assert page.evaluate(PLACES, [*above, "sent"]) == queued
    record(answer(claim(command), 200))
    lifecycle.acknowledge(scene.operator, command.pk, Outcome.SUCCESS, "docked")
    expect(page.locator("#state")).to_have_text("Acked")
    assert page.evaluate(PLACES, [*above, "sent"]) == queued
