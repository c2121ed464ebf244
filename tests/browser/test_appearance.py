"""Every page, in both themes and at both ends of width: accessible, within the window, silent."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from commands import datasets
from commands.rules.states import State
from organizations.models import Membership, User
from organizations.rules import roles
from tests.browser.conftest import OpenWindow
from tests.factories import Scene, answer, claim, fail_with, new_scene, record
from webhooks import endpoints

pytestmark = pytest.mark.django_db(transaction=True)

WIDTHS = (360, 2560, 1280)


def command_pages(scene: Scene) -> Iterator[str]:
    """Every page about commands, full of things."""
    retrying = scene.dispatched(name="retrying", ack_timeout_s=3600)
    record(answer(claim(retrying), 503, response_excerpt=b"out of order", retry_after="120"))
    commands = {state: scene.in_state(state) for state in State}
    yield "/commands/"
    yield "/commands/?q=nothing-like-it&since=whenever"
    yield from (f"/commands/{command.pk}/" for command in (*commands.values(), retrying))
    yield "/commands/new/"
    yield f"/commands/{commands[State.LOGGED].pk}/dispatch/"
    yield f"/commands/{retrying.pk}/retract/"
    yield f"/commands/{commands[State.TIMED_OUT].pk}/reissue/"


def other_pages(scene: Scene) -> Iterator[str]:
    """Every other page for somebody who is in."""
    other = datasets.create_dataset(scene.owner, scene.experiment, "Not armed")
    disabled = scene.another_endpoint("telemetry", name="Disabled one")
    fail_with(scene.send(disabled), [500, 503])
    endpoints.disable(scene.owner, disabled.pk, "Moving to the new cluster")
    scene.delivered()
    yield "/datasets/"
    yield "/datasets/new/"
    yield "/experiments/new/"
    yield f"/datasets/{other.pk}/arm/"
    yield f"/datasets/{scene.dataset.pk}/disarm/"
    yield "/endpoints/"
    yield "/endpoints/new/"
    yield f"/endpoints/{scene.endpoint.pk}/"
    yield f"/endpoints/{disabled.pk}/"
    yield f"/endpoints/{scene.endpoint.pk}/disable/"
    yield f"/endpoints/{disabled.pk}/enable/"
    yield "/notices/"
    yield "/accounts/password/change/"
    yield "/accounts/logout/"


def faults_of(page: Page, path: str) -> list[str]:
    """What axe finds on the page in both themes, and where it is wider than the window."""
    page.goto(path)
    found = [Axe().run(page)]
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    found.append(Axe().run(page, options={"runOnly": ["color-contrast"]}))
    return [report.generate_report() for report in found if report.violations_count] + [
        f"too wide at {width} px" for width in WIDTHS if _overflows(page, width)
    ]


def _overflows(page: Page, width: int) -> bool:
    page.set_viewport_size({"width": width, "height": 900})
    wide: bool = page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    return wide


@pytest.mark.parametrize("pages", [command_pages, other_pages])
def test_every_page(
    scene: Scene, open_window: OpenWindow, pages: Callable[[Scene], Iterator[str]]
) -> None:
    page = open_window(scene.owner).page
    faults = {path: found for path in pages(scene) if (found := faults_of(page, path))}
    assert not faults, "\n".join(fault for found in faults.values() for fault in found)


def test_pages_for_those_who_are_not_in(scene: Scene, open_window: OpenWindow) -> None:
    window = open_window(None)
    window.forgive("status of 404")
    paths = ["/accounts/login/", "/accounts/signup/", "/accounts/password/reset/", "/nothing/"]
    assert not [fault for path in paths for fault in faults_of(window.page, path)]


def test_a_sheet_is_a_dialog_that_closes_and_gives_the_focus_back(
    scene: Scene, open_window: OpenWindow
) -> None:
    page = open_window(scene.operator).page
    page.goto(f"/commands/{scene.issued().pk}/")
    page.get_by_role("link", name="Dispatch…").press("Enter")
    expect(page.get_by_role("dialog", name="Dispatch hold")).to_be_visible()
    assert Axe().run(page).violations_count == 0
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.get_by_role("link", name="Dispatch…")).to_be_focused()


def test_the_theme_is_switched_and_stays(scene: Scene, open_window: OpenWindow) -> None:
    page = open_window(scene.viewer).page
    page.goto("/commands/")
    page.get_by_role("button", name="Theme: as the system. Change it.").click()
    page.get_by_role("link", name="Datasets").click()
    expect(page.get_by_role("button", name="Theme: dark. Change it.")).to_be_visible()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_an_organization_is_chosen_in_its_menu(scene: Scene, open_window: OpenWindow) -> None:
    other = new_scene("Harbour Drones")
    user: User = scene.operator.user
    Membership.objects.create(organization=other.organization, user=user, role=roles.VIEWER)
    page = open_window(scene.operator).page
    page.goto("/commands/")
    page.locator("#organization-switch").click()
    page.get_by_role("button", name="Northwind Robotics").click()
    expect(page.locator("#organization-switch")).to_contain_text("Northwind Robotics")
    page.goto("/commands/")
    expect(page.locator("#issue")).to_be_visible()
