"""A real browser on a real server, with a real engine behind it."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator
from shutil import which

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright
from pytest_django.live_server_helper import LiveServer

from organizations.actors import Actor
from tests.factories import Scene, new_scene
from tests.missing import missing
from webhooks import endpoints
from webhooks.engine.pump import Pump
from webhooks.engine.sender import Sender, SenderConfig

# Playwright keeps an event loop in the test's own thread, where the tests also use the database.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := which(name))),
    None,
)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# What must come on a busy machine: a bound, not a measurement.
PATIENCE_MS = 20_000
REPORT_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`CSP: ${event.violatedDirective} blocked ${event.blockedURI}`));
"""

OpenWindow = Callable[..., "Window"]


class Window:
    """A tab of somebody's browser, which keeps everything that went wrong in it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.troubles: list[str] = []
        self._forgiven: list[str] = []
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.troubles.append(str(error)))

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.troubles.append(message.text)

    def forgive(self, pattern: str) -> None:
        """The test provokes this message of the browser."""
        self._forgiven.append(pattern)

    def unforgiven(self) -> list[str]:
        return [
            trouble
            for trouble in self.troubles
            if not any(re.search(pattern, trouble) for pattern in self._forgiven)
        ]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        missing("Chromium", "install the package chromium.")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def scene(transactional_db: None, loopback_allowed: None) -> Scene:
    """An organization whose rows the server sees."""
    return new_scene("Northwind Robotics")


@pytest.fixture
def server(scene: Scene, plain_static: None, live_server: LiveServer) -> str:
    """Where the console is served."""
    return live_server.url


@pytest.fixture
def open_window(chromium: Browser, server: str) -> Iterator[OpenWindow]:
    """``open_window(actor, theme="dark", width=360)``: a tab, signed in unless actor is None. When
    the test is over, nothing may have gone wrong in any of them.
    """
    opened: list[Window] = []

    def open_one(
        actor: Actor | None, theme: str = "light", width: int = 1280, at: str = server
    ) -> Window:
        context = chromium.new_context(
            base_url=at,
            color_scheme="dark" if theme == "dark" else "light",
            viewport={"width": width, "height": 900},
            reduced_motion="reduce",
        )
        context.set_default_timeout(PATIENCE_MS)
        context.add_init_script(REPORT_VIOLATIONS)
        if actor:
            session = session_of(actor)
            context.add_cookies([{"name": "sessionid", "value": session, "url": at}])
        opened.append(Window(context.new_page()))
        return opened[-1]

    yield open_one
    troubles = [trouble for window in opened for trouble in window.unforgiven()]
    for window in opened:
        window.page.context.close()
    assert not troubles


def session_of(actor: Actor) -> str:
    """A session of the actor, as a cookie's value."""
    client = Client()
    client.force_login(actor.user)
    return client.cookies[settings.SESSION_COOKIE_NAME].value


@pytest.fixture
def engine(scene: Scene) -> Iterator[None]:
    """Deliveries are sent and deadlines kept, in this process."""
    config = SenderConfig(
        deadline_s=settings.ATTEMPT_DEADLINE_S,
        addresses=endpoints.address_policy(),
        ca_bundle=None,
    )
    pump, over = Pump(Sender(config), threads=4), threading.Event()

    def tick() -> None:
        while not over.wait(0.05):
            pump.wake()

    pump.start()
    clock = threading.Thread(target=tick)
    clock.start()
    yield
    over.set()
    clock.join()
    pump.stop()
