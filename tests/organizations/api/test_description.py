"""The API describes itself, completely, and the page that shows it keeps the content policy."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from tests.organizations.api.client import Api


def addresses(patterns: list[Any] | None = None, prefix: str = "/") -> list[str]:
    """Every address of the API, as the URL configuration has it."""
    if patterns is None:
        patterns = get_resolver().url_patterns
    found: list[str] = []
    for pattern in patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            found += addresses(pattern.url_patterns, path)
        elif isinstance(pattern, URLPattern) and path.startswith("/api/"):
            found.append(path)
    return found


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    out = io.StringIO()
    call_command(
        "spectacular", "--validate", "--fail-on-warn", "--format", "openapi-json", stdout=out
    )
    described: dict[str, Any] = json.loads(out.getvalue())
    return described


def test_the_description_is_valid_and_made_without_a_warning(description: dict[str, Any]) -> None:
    assert description["openapi"].startswith("3.1")


def test_every_address_is_described(description: dict[str, Any]) -> None:
    def plain(path: str) -> str:
        return re.sub(r"[<{].*?[>}]", "{}", path)

    described = {plain(path) for path in description["paths"]}

    assert {plain(path) for path in addresses()} - described == {"/api/docs"}


def test_every_operation_names_its_scope_and_the_key(description: dict[str, Any]) -> None:
    for path, operations in description["paths"].items():
        for operation in operations.values():
            if path != "/api/schema":
                assert operation["description"].startswith("Needs the scope `"), path
                assert operation["security"] == [{"apiKey": []}], path
                assert {"401", "403"} <= set(operation["responses"]), path


def test_the_description_is_open_and_json_unless_yaml_is_asked_for(db: None) -> None:
    in_json = Api().get("schema")
    in_yaml = Api().send("schema", b"", method="GET", HTTP_ACCEPT="application/yaml")

    assert json.loads(in_json.content)["paths"]
    assert in_yaml.content.startswith(b"openapi: 3.1")


def test_the_page_has_no_inline_script_or_style(db: None, plain_static_files: None) -> None:
    answer = Client().get("/api/docs")

    page = answer.content.decode()
    assert answer.status_code == 200
    assert "<style" not in page
    assert " style=" not in page
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", page))


def test_the_page_relaxes_the_content_policy_for_its_icons_alone(
    db: None, plain_static_files: None
) -> None:
    policy = Client().get("/api/docs")["Content-Security-Policy"]

    assert "img-src 'self' data:" in policy
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy


def test_every_file_that_the_page_names_exists(db: None, plain_static_files: None) -> None:
    page = Client().get("/api/docs").content.decode()

    for name in re.findall(r'(?:src|href)="/static/([^"]+)"', page):
        assert finders.find(name), name
