"""Calls the API as a client would: a key in its header, bytes in, JSON out."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from rest_framework.test import APIClient

from organizations import exact_json, keys
from organizations.rules import roles
from tests.factories import Scene


class Api:
    """One key at work. Without a key, nobody."""

    def __init__(self, key: str | None = None) -> None:
        # A crash is to be seen as the client sees it.
        self.http = APIClient(raise_request_exception=False)
        if key is not None:
            self.http.credentials(HTTP_X_API_KEY=key)

    @classmethod
    def of(cls, scene: Scene, role: str = roles.OWNER) -> Api:
        """The first key of somebody in the organization: all scopes of the role."""
        return cls(scene.provisioned.members[role].api_key)

    @classmethod
    def with_scopes(cls, scene: Scene, *scopes: str) -> Api:
        """A key of the owner's that may do so much and no more."""
        _, text = keys.create_key(scene.organization, scene.owner.user, "narrow", scopes)
        return cls(text)

    def get(self, path: str, **query: Any) -> HttpResponse:
        return self.http.get(f"/api/{path}", query)

    def post(self, path: str, body: Any = None) -> HttpResponse:
        return self.send(path, exact_json.dumps({} if body is None else body))

    def patch(self, path: str, body: Any = None) -> HttpResponse:
        return self.send(path, exact_json.dumps({} if body is None else body), method="PATCH")

    def send(
        self,
        path: str,
        body: Any,
        content_type: str = "application/json",
        method: str = "POST",
        **headers: Any,
    ) -> HttpResponse:
        """Send a body, text or bytes, as it is."""
        return self.http.generic(method, f"/api/{path}", body, content_type, **headers)

    def items(self, path: str, **query: Any) -> list[dict[str, Any]]:
        """The rows of a list's page."""
        answer = self.get(path, **query)
        assert answer.status_code == 200, answer.content
        rows: list[dict[str, Any]] = content(answer)["items"]
        return rows


def content(answer: HttpResponse) -> Any:
    """The body, with exact numbers."""
    return exact_json.loads(answer.content)


def problem(answer: HttpResponse, status: int, code: str) -> dict[str, Any]:
    """The problem in an answer, after checking that it is one and which."""
    assert answer["Content-Type"] == "application/problem+json", answer.content
    told: dict[str, Any] = content(answer)
    assert (answer.status_code, told["status"], told["code"]) == (status, status, code), told
    assert set(told) <= {"type", "title", "status", "detail", "code", "errors"}
    assert told["type"]
    assert told["title"]
    assert told["detail"]
    return told
