"""An operator at work: issue, look, dispatch, watch, withdraw."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from commands import datasets, lifecycle
from commands.models import Command
from commands.rules.reports import Outcome
from commands.rules.states import State
from organizations.rules import roles
from tests.browser.conftest import OpenWindow
from tests.factories import Scene, fresh, story
from tests.receivers import ScriptedReceiver, respond
from webhooks.models import Endpoint

pytestmark = pytest.mark.django_db(transaction=True)


def point_endpoint_at(scene: Scene, receiver: ScriptedReceiver) -> None:
    Endpoint.objects.filter(pk=scene.endpoint.pk).update(url=receiver.url)


def test_a_command_from_login_to_its_acknowledgement_without_a_reload(
    scene: Scene, engine: None, open_window: OpenWindow
) -> None:
    operator = scene.provisioned.members[roles.OPERATOR]
    page = open_window(None).page
    with ScriptedReceiver(respond(200, b"taken")) as receiver:
        point_endpoint_at(scene, receiver)
        page.goto("/commands/new/")
        page.get_by_label("Email").fill(operator.membership.user.email)
        page.get_by_label("Password", exact=True).fill(operator.password)
        page.get_by_role("button", name="Sign in").click()

        page.get_by_label("Dataset").select_option(str(scene.dataset.pk))
        page.get_by_label("Name").fill("dock")
        page.get_by_label("Parameters").fill('{"berth": 4, "speed": 1.1')
        expect(page.locator("#parameters-check")).to_contain_text("Not JSON")
        page.get_by_label("Parameters").fill('{"berth": 4, "speed": 1.10}')
        expect(page.locator("#parameters-check")).to_contain_text("2 members")
        page.get_by_role("button", name="Issue").click()

        expect(page.locator("#state")).to_have_text("Logged")
        page.evaluate("window.sameDocument = true")
        page.get_by_role("link", name="Dispatch…").click()
        sheet = page.get_by_role("dialog")
        expect(sheet).to_contain_text(receiver.url)
        sheet.get_by_label("Time to acknowledge").fill("600")
        sheet.get_by_role("button", name="Dispatch").click()

        expect(sheet).to_be_hidden()
        expect(page.locator("#state")).to_have_text("Delivered")
        expect(page.locator("#attempt-1")).to_contain_text("200 delivered")
        expect(page.get_by_role("timer")).to_have_text(re.compile(r"^(9|10):"))
        command = Command.objects.get(name="dock")
        lifecycle.acknowledge(scene.operator, command.pk, Outcome.SUCCESS, "docked")

    expect(page.locator("#state")).to_have_text("Acked")
    expect(page.locator("#status")).to_have_text("dock is acked")
    expect(page.locator("#timeline")).to_contain_text("docked")
    assert page.evaluate("window.sameDocument")
    assert b'"speed":1.10' in receiver.requests[0].body


def test_a_command_is_withdrawn_with_a_reason(
    scene: Scene, engine: None, open_window: OpenWindow
) -> None:
    page = open_window(scene.operator).page
    with ScriptedReceiver(respond(503)) as receiver:
        point_endpoint_at(scene, receiver)
        command = scene.dispatched()
        page.goto(f"/commands/{command.pk}/")
        expect(page.locator("#attempt-1")).to_contain_text("503 error")
        page.get_by_role("link", name="Retract…").click()
        sheet = page.get_by_role("dialog")
        expect(sheet).to_contain_text("stop every further attempt")
        sheet.get_by_label("Reason").fill("Wrong berth")
        sheet.get_by_role("button", name="Retract").click()
        expect(page.locator("#state")).to_have_text("Retracted")
    expect(page.locator("#timeline")).to_contain_text("Wrong berth")
    expect(page.get_by_role("button", name="Retract")).to_have_attribute("aria-disabled", "true")
    assert fresh(command).retraction_reason == "Wrong berth"


def test_a_refusal_appears_in_the_preview_and_the_way_on_leads_back_to_it(
    scene: Scene, open_window: OpenWindow
) -> None:
    window = open_window(scene.operator)
    window.forgive("status of 409")
    page, command = window.page, scene.issued()
    page.goto(f"/commands/{command.pk}/")
    page.get_by_role("link", name="Dispatch…").click()
    sheet = page.get_by_role("dialog")
    expect(sheet.get_by_role("button", name="Dispatch")).to_be_enabled()
    datasets.disarm(scene.owner, scene.dataset.pk)
    sheet.get_by_role("button", name="Dispatch").click()
    expect(sheet.get_by_role("alert")).to_contain_text("The dataset is not armed.")

    sheet.get_by_role("link", name="Arm the dataset…").click()
    sheet.get_by_role("button", name="Arm it").click()
    expect(sheet).to_contain_text("Goes to")
    sheet.get_by_role("button", name="Dispatch").click()
    expect(page.locator("#state")).to_have_text("Queued")
    assert story(command) == ["issued", "dispatch_refused", "dispatched"]


def test_a_double_click_dispatches_once(scene: Scene, open_window: OpenWindow) -> None:
    page, command = open_window(scene.operator).page, scene.issued()
    page.goto(f"/commands/{command.pk}/")
    page.get_by_role("link", name="Dispatch…").click()
    page.get_by_role("dialog").get_by_role("button", name="Dispatch").dblclick()
    expect(page.locator("#state")).to_have_text("Queued")
    assert story(command) == ["issued", "dispatched"]


def test_a_viewer_sees_no_act_and_forging_one_is_refused(
    scene: Scene, open_window: OpenWindow
) -> None:
    window, command = open_window(scene.viewer), scene.dispatched()
    window.forgive("status of 403")
    page = window.page
    page.goto(f"/commands/{command.pk}/")
    expect(page.locator("#state")).to_have_text("Queued")
    expect(page.locator("#retract, #dispatch, #reissue")).to_have_count(0)
    status = page.evaluate(
        """async (path) => {
          const token = document.querySelector("[name=csrfmiddlewaretoken]").value;
          const headers = {"X-CSRFToken": token};
          return (await fetch(path, {method: "POST", headers})).status;
        }""",
        f"/commands/{command.pk}/retract/",
    )
    assert status == 403
    assert fresh(command).state == State.QUEUED


def test_an_owner_registers_an_endpoint_and_sees_its_secret_once(
    scene: Scene, open_window: OpenWindow
) -> None:
    page = open_window(scene.owner).page
    page.goto("/endpoints/")
    page.get_by_role("link", name="Register an endpoint").click()
    page.get_by_label("Name").fill("Depot relay")
    page.get_by_label("URL").fill("https://relay.depot.example/in")
    page.get_by_label("telemetry:").check()
    page.get_by_role("button", name="Register").click()
    expect(page.locator("#secret")).to_contain_text("whsec_")
    page.reload()
    expect(page.get_by_role("heading", name="Depot relay")).to_be_visible()
    assert "whsec_" not in page.content()
    assert scene.organization.endpoints.filter(name="Depot relay").count() == 1


def test_an_owner_disables_and_enables_by_hand(scene: Scene, open_window: OpenWindow) -> None:
    page = open_window(scene.owner).page
    page.goto(f"/endpoints/{scene.endpoint.pk}/")
    page.get_by_role("link", name="Disable…").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("Moving house")
    page.get_by_role("dialog").get_by_role("button", name="Disable").click()
    expect(page.locator("#disabled-notice")).to_contain_text("Moving house")
    page.get_by_role("link", name="Enable…").click()
    password = scene.provisioned.members[roles.OWNER].password
    page.get_by_role("dialog").get_by_label("Your password").fill(password)
    page.get_by_role("dialog").get_by_role("button", name="Enable").click()
    expect(page.locator("#state")).to_have_text("Enabled")
    expect(page.locator("#disabled-notice")).to_have_count(0)
