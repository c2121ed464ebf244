"""What an owner does to an endpoint, in a browser, with a receiver that answers."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from organizations.rules import roles
from tests.browser.conftest import OpenWindow
from tests.browser.test_appearance import faults_of
from tests.factories import Scene
from tests.receivers import ScriptedReceiver, respond
from webhooks import endpoints

pytestmark = pytest.mark.django_db(transaction=True)

ACTS = ("edit", "ping", "rotate-secret", "disable", "enable", "archive")


def open_sheet(page: Page, act: str) -> None:
    page.get_by_role("link", name=f"{act}…").click()
    expect(page.get_by_role("dialog")).to_be_visible()


def test_every_act_has_a_page_in_both_themes(scene: Scene, open_window: OpenWindow) -> None:
    endpoints.ping(scene.owner, scene.endpoint.pk)
    page = open_window(scene.owner).page
    paths = ["", *(f"{act}/" for act in ACTS)]
    faults = [
        fault
        for path in paths
        for fault in faults_of(page, f"/endpoints/{scene.endpoint.pk}/{path}")
    ]
    assert not faults, "\n".join(faults)


def test_a_disabled_endpoint_is_mended_pinged_and_enabled(
    scene: Scene, open_window: OpenWindow, engine: None
) -> None:
    endpoints.disable(scene.owner, scene.endpoint.pk, "Receiver down")
    window = open_window(scene.owner)
    window.forgive("status of 422")
    page = window.page
    page.goto(f"/endpoints/{scene.endpoint.pk}/")
    with ScriptedReceiver(respond(200)) as receiver:
        open_sheet(page, "Edit")
        page.get_by_label("URL").fill(receiver.url)
        page.get_by_role("button", name="Save").click()
        expect(page.locator("#endpoint-head")).to_contain_text(receiver.url)
        open_sheet(page, "Ping")
        page.get_by_role("button", name="Send a ping").click()
        expect(page.locator("#last-ping")).to_contain_text("200")
    open_sheet(page, "Enable")
    expect(page.locator("#pinged")).to_contain_text("was answered with 200")
    page.get_by_label("Your password").fill("a guess")
    page.locator("#confirm").click()
    expect(page.locator("#id_password_error")).to_be_visible()
    expect(page.get_by_label("Your password")).to_be_focused()
    page.get_by_label("Your password").fill(scene.provisioned.members[roles.OWNER].password)
    page.locator("#confirm").click()
    expect(page.locator("#state")).to_have_text("Enabled")


def test_a_leaked_secret_is_dropped_after_a_second_question(
    scene: Scene, open_window: OpenWindow
) -> None:
    page = open_window(scene.owner).page
    page.goto(f"/endpoints/{scene.endpoint.pk}/")
    open_sheet(page, "Rotate secret")
    page.get_by_label("It leaked").check()
    page.locator("#confirm").click()
    page.get_by_role("button", name="Drop the old secrets now").click()
    expect(page.locator("#secret")).to_have_text(re.compile("^whsec_"))
    page.get_by_role("link", name="I have stored it").click()
    expect(page.locator("#endpoint-head")).to_be_visible()
    assert "whsec_" not in page.content()


def test_an_archived_endpoint_is_shown_as_such_and_offers_nothing(
    scene: Scene, open_window: OpenWindow
) -> None:
    page = open_window(scene.owner).page
    page.goto(f"/endpoints/{scene.endpoint.pk}/")
    open_sheet(page, "Archive")
    page.get_by_role("button", name="Archive for good").click()
    expect(page.locator("#state")).to_have_text("Archived")
    expect(page.locator("#endpoint-head .acts a")).to_have_count(0)
