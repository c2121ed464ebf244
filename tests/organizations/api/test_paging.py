"""Lists, page by page."""

from __future__ import annotations

from typing import Any

import pytest

from tests.factories import Scene, new_scene
from tests.organizations.api.client import Api, content, problem


def names(rows: list[dict[str, Any]]) -> list[str]:
    return [row["name"] for row in rows]


@pytest.fixture
def api(scene: Scene) -> Api:
    return Api.of(scene)


@pytest.fixture
def twelve(scene: Scene) -> list[str]:
    """The names of twelve commands, newest first."""
    for number in range(12):
        scene.issued(name=f"command {number:02}")
    return [f"command {number:02}" for number in reversed(range(12))]


def walk(api: Api, path: str, **query: Any) -> list[list[dict[str, Any]]]:
    """Every page of a list."""
    pages = []
    cursor: dict[str, str] = {}
    while True:
        page = content(api.get(path, **query, **cursor))
        pages.append(page["items"])
        if page["nextCursor"] is None:
            return pages
        cursor = {"cursor": page["nextCursor"]}


def test_the_newest_come_first(api: Api, twelve: list[str]) -> None:
    assert names(api.items("commands/list")) == twelve


def test_pages_follow_one_another_without_gap_or_repetition(api: Api, twelve: list[str]) -> None:
    pages = walk(api, "commands/list", limit=5)

    assert [len(page) for page in pages] == [5, 5, 2]
    assert names([row for page in pages for row in page]) == twelve


def test_a_page_that_ends_the_list_exactly_has_no_next(api: Api, twelve: list[str]) -> None:
    assert [len(page) for page in walk(api, "commands/list", limit=6)] == [6, 6]


def test_rows_that_arrive_meanwhile_shift_nothing(
    scene: Scene, api: Api, twelve: list[str]
) -> None:
    first = content(api.get("commands/list", limit=5))
    scene.issued(name="latecomer")
    second = content(api.get("commands/list", limit=5, cursor=first["nextCursor"]))

    assert names(first["items"] + second["items"]) == twelve[:10]


def test_a_cursor_passes_through_an_address_as_it_is(api: Api, twelve: list[str]) -> None:
    cursor = content(api.get("commands/list", limit=1))["nextCursor"]

    answer = api.http.get(f"/api/commands/list?limit=1&cursor={cursor}")

    assert names(content(answer)["items"]) == [twelve[1]]


def test_a_page_has_50_rows_unless_said_and_200_at_most(scene: Scene, api: Api) -> None:
    for number in range(201):
        scene.issued(name=str(number))

    assert len(api.items("commands/list")) == 50
    assert len(api.items("commands/list", limit=200)) == 200


@pytest.mark.parametrize("limit", ["0", "201", "-1", "1.0", "", "ten", "1e1", " 5", "9" * 30, "٣"])
def test_a_limit_out_of_range_is_refused(api: Api, limit: str) -> None:
    told = problem(api.get("commands/list", limit=limit), 400, "validation_error")

    assert "limit" in told["errors"]


def test_a_cursor_of_another_list_is_refused(api: Api, twelve: list[str]) -> None:
    cursor = content(api.get("commands/list", limit=1))["nextCursor"]

    for path in ("datasets", "experiments", "webhooks/endpoints", "webhooks/deliveries"):
        told = problem(api.get(path, cursor=cursor), 400, "validation_error")
        assert "cursor" in told["errors"]


def test_a_cursor_of_another_organization_is_refused(api: Api, twelve: list[str]) -> None:
    cursor = content(api.get("commands/list", limit=1))["nextCursor"]

    stranger = Api.of(new_scene("Another"))

    problem(stranger.get("commands/list", cursor=cursor), 400, "validation_error")


@pytest.mark.parametrize("cursor", ["", "x", "x.y", "é", "a" * 5000, "AAAA.BBBB", "\0"])
def test_a_forged_cursor_is_refused(api: Api, cursor: str) -> None:
    told = problem(api.get("commands/list", cursor=cursor), 400, "validation_error")

    assert "cursor" in told["errors"]


def test_a_cursor_that_was_changed_is_refused(api: Api, twelve: list[str]) -> None:
    cursor = content(api.get("commands/list", limit=1))["nextCursor"]

    problem(api.get("commands/list", cursor=cursor[1:]), 400, "validation_error")
    problem(api.get("commands/list", cursor=cursor[:-1]), 400, "validation_error")


@pytest.mark.parametrize(
    "path",
    ["commands/list", "datasets", "experiments", "webhooks/endpoints", "webhooks/deliveries"],
)
def test_a_parameter_that_a_list_does_not_know_is_refused(api: Api, path: str) -> None:
    told = problem(api.get(path, nonsense="1"), 400, "validation_error")

    assert list(told["errors"]) == ["nonsense"]


def test_a_parameter_twice_is_refused(api: Api) -> None:
    answer = api.http.get("/api/commands/list?state=logged&state=queued")

    assert list(problem(answer, 400, "validation_error")["errors"]) == ["state"]
