"""People who look at the console's pages through Django's test client."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import Any

from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from organizations.actors import Actor
from organizations.console.responses import REVISION_HEADER


class Visitor:
    """Somebody signed in. ``get`` and ``post`` are a browser's; the others are htmx's."""

    def __init__(self, actor: Actor) -> None:
        self.client = Client()
        self.client.force_login(actor.user)

    def get(self, path: str, **query: str) -> Page:
        return Page(self.client.get(path, query))

    def post(self, path: str, **form: str) -> Page:
        return Page(self.client.post(path, form))

    def poll(self, path: str, target: str, revision: str = "", **query: str) -> Page:
        headers = {"HX-Request": "true", "HX-Target": target, REVISION_HEADER: revision}
        return Page(self.client.get(path, query, headers=headers))

    def get_sheet(self, path: str, **query: str) -> Page:
        return Page(self.client.get(path, query, headers={"HX-Request": "true"}))

    def post_sheet(self, path: str, **form: str) -> Page:
        return Page(self.client.post(path, form, headers={"HX-Request": "true"}))


class Page:
    """An answer, as somebody reads it."""

    def __init__(self, response: Any) -> None:
        self.response: HttpResponse = response
        self.status: int = response.status_code
        self.html = response.content.decode()

    @property
    def text(self) -> str:
        """The words on the page, without markup."""
        body = re.sub(r"<(script|style|title)\b.*?</\1>", " ", self.html, flags=re.DOTALL)
        return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())

    @property
    def revision(self) -> str:
        return self.response.headers.get(REVISION_HEADER, "")

    @property
    def to(self) -> str:
        """Where it leads: a redirect of the browser or of htmx."""
        headers = self.response.headers
        return headers.get("Location") or headers.get("HX-Redirect", "")

    def has(self, element_id: str) -> bool:
        return f'id="{element_id}"' in self.html

    def value(self, name: str) -> str:
        """The value of a form's input."""
        tag = re.search(rf'<input[^>]*name="{name}"[^>]*>', self.html)
        assert tag, f"no input {name}"
        found = re.search(r'value="([^"]*)"', tag[0])
        return html.unescape(found[1]) if found else ""


def queries_of(act: Callable[[], object]) -> int:
    """How many queries it takes."""
    with CaptureQueriesContext(connection) as captured:
        act()
    return len(captured)
