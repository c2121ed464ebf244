"""``python -m tests.screenshots``: a picture of every page, in both themes, into docs/screenshots.

Starts a throw-away PostgreSQL and the web server, makes an organization with an hour behind it, signs in
as its owner and looks. Nothing else has to run.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Literal

from config.processes import adopt_orphans, kill_descendants
from tests.served import prepared, web

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from tests.screenshots.scene import Day

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "screenshots"
WIDTH, HEIGHT = 1280, 1000
# Where it takes more to see what the page is about.
TALLER = {"overview": 1240}
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
# Pages by their name in the URL configuration, and of what; one that is not there yet is left out.
PAGES = {
    "overview": "",
    "commands": "",
    "command": "retrying",
    "issue": "",
    "dispatch": "logged",
    "datasets": "",
    "endpoints": "",
    "endpoint": "gateway",
    "deliveries": "",
    "delivery": "delivery",
    "events": "",
    "event": "event",
    "notices": "",
    "audit": "",
    "members": "",
}
ADDRESSES = {"admin": "/admin/", "admin-endpoints": "/admin/webhooks/endpoint/"}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.screenshots", description=__doc__)
    parser.add_argument("--to", type=Path, default=FOLDER, help="the folder (docs/screenshots)")
    parser.add_argument("--only", default="", help="some of the pages, with commas")
    options = parser.parse_args(arguments)
    chromium = next((path for name in CHROMIUM if (path := which(name))), None)
    if chromium is None:
        print("There is no Chromium: install the package chromium.", file=sys.stderr)
        return 1
    adopt_orphans()
    with contextlib.ExitStack() as at_the_end:
        at_the_end.callback(kill_descendants)
        at_the_end.enter_context(prepared())
        day = _made()
        at_the_end.enter_context(_beating())
        url = at_the_end.enter_context(web())
        _shoot(chromium, url, day, options.to, set(options.only.split(",")) - {""})
    return 0


def _made() -> Day:
    from tests.screenshots.hour import spread
    from tests.screenshots.scene import live, prepare

    day = prepare()
    live(day)
    spread(day)
    return day


@contextlib.contextmanager
def _beating() -> Iterator[None]:
    """The pool that is to seem at work: its heartbeat alone."""
    from django.db import connection

    from webhooks.engine import heartbeat

    over = threading.Event()

    def beat() -> None:
        while not over.wait(0.5):
            heartbeat.beat()
        connection.close()

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _shoot(chromium: str, url: str, day: Day, folder: Path, only: set[str]) -> None:
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    addresses = {**_addresses(), **ADDRESSES}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        for theme in THEMES:
            _shoot_theme(browser, url, day, folder, addresses, theme, only)
        browser.close()


def _shoot_theme(
    browser: Browser,
    url: str,
    day: Day,
    folder: Path,
    addresses: dict[str, str],
    theme: Literal["light", "dark"],
    only: set[str],
) -> None:
    from tests.screenshots.pictures import take

    context = browser.new_context(
        base_url=url,
        viewport={"width": WIDTH, "height": HEIGHT},
        color_scheme=theme,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto("/accounts/login/")
    if not only or "login" in only:
        take(page, folder / f"login-{theme}.png")
    _sign_in(page, day)
    for name, address in addresses.items():
        if not only or name in only:
            page.set_viewport_size({"width": WIDTH, "height": TALLER.get(name, HEIGHT)})
            page.goto(address)
            page.wait_for_load_state("networkidle")
            take(page, folder / f"{name}-{theme}.png")
    context.close()


def _sign_in(page: Page, day: Day) -> None:
    from organizations.rules import roles

    owner = day.scene.provisioned.members[roles.OWNER]
    page.get_by_label("Email").fill(owner.membership.user.email)
    page.get_by_label("Password", exact=True).fill(owner.password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_load_state("networkidle")


def _addresses() -> dict[str, str]:
    from django.urls import NoReverseMatch, reverse

    found = {}
    for name, thing in PAGES.items():
        try:
            found[name] = reverse(name, args=[_thing(thing)] if thing else [])
        except NoReverseMatch:
            print(f"There is no page {name}.", file=sys.stderr)
    return found


def _thing(which: str) -> object:
    """The id of what the page shows."""
    from commands.models import Command
    from webhooks.models import Delivery, Endpoint, Event

    match which:
        case "retrying":
            under_way = Command.objects.filter(state="queued", delivery__policy="command")
            return under_way.latest("pk").pk
        case "logged":
            return Command.objects.filter(state="logged", dispatch_refusal="").latest("pk").pk
        case "gateway":
            return Endpoint.objects.get(name="Dock gateway").pk
        case "delivery":
            return Delivery.objects.filter(policy="event", attempts=2).latest("pk").pk
        case _:
            return Event.objects.filter(type="command.acked").latest("pk").pk


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
