"""Every page that the console has, by its URL configuration: accessible, within the window, and silent.

A page that is added is looked at here without anybody listing it. ``test_appearance`` looks further at
those that have many faces.
"""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.conftest import OpenWindow
from tests.factories import Scene
from tests.pages import addresses, things_of

pytestmark = pytest.mark.django_db(transaction=True)


def faults_of(page: Page, name: str, address: str) -> list[str]:
    """What is wrong with a page at the window's width and in its theme, with the page's name."""
    answer = page.goto(address)
    assert answer
    found = [] if answer.status == 200 else [f"answered {answer.status}"]
    if page.locator("main").count() != 1:
        found.append("has no main part")
    if report := Axe().run(page):
        found += [report.generate_report()] if report.violations_count else []
    wide: int = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    if wide > 0:
        found.append(f"is {wide} px wider than the window")
    return [f"{name} ({address}): {fault}" for fault in found]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_every_page(scene: Scene, open_window: OpenWindow, theme: str, width: int) -> None:
    pages = addresses(things_of(scene))
    page = open_window(scene.owner, theme=theme, width=width).page

    faults = [fault for name, path in pages.items() for fault in faults_of(page, name, path)]

    assert not faults, "\n".join(faults)
    assert len(pages) > 20
