"""Events told and read back by API, as its tests do."""

from __future__ import annotations

from typing import Any

from tests.organizations.api.client import Api, content

ORDER = {"type": "order.created", "data": {"number": 7}}


def publish(api: Api, **changes: Any) -> dict[str, Any]:
    answer = api.post("events", {**ORDER, **changes})
    assert answer.status_code == 202, answer.content
    taken: dict[str, Any] = content(answer)
    return taken


def page(api: Api, **query: Any) -> dict[str, Any]:
    answer = api.get("events", **query)
    assert answer.status_code == 200, answer.content
    read: dict[str, Any] = content(answer)
    return read


def ids(read: dict[str, Any]) -> list[str]:
    return [item["id"] for item in read["items"]]
