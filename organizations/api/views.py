"""What every view of the API has in common."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.views import APIView

from organizations.actors import Actor
from organizations.api import inputs
from organizations.api.content import JsonWhateverIsAccepted, admit_body
from organizations.api.fields import parse_id
from organizations.api.inputs import Input
from organizations.api.problems import not_found


class ApiView(APIView):
    """A view that serves one organization: that of the key."""

    content_negotiation_class = JsonWhateverIsAccepted
    http_method_names = ["get", "head", "post", "patch"]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """After the key was checked, and before anything reads the body, its size."""
        super().initial(request, *args, **kwargs)
        admit_body(request._request)

    @property
    def default_response_headers(self) -> dict[str, str]:
        """No cache keeps an answer: it depends on a header that caches do not look at."""
        return {**super().default_response_headers, "Cache-Control": "no-store"}

    @property
    def actor(self) -> Actor:
        """Who calls."""
        actor = self.request.auth
        assert isinstance(actor, Actor)
        return actor

    def body(self, kind: type[Input]) -> dict[str, Any]:
        """The validated body."""
        return inputs.validated(kind, self.request.data)

    def query(self, kind: type[Input]) -> dict[str, Any]:
        """The validated parameters of the address."""
        return inputs.validated_query(kind, self.request.query_params)


def id_of(text: str) -> UUID:
    """The id that a client sent. One that cannot be an id is as unknown as any other: 404."""
    found = parse_id(text)
    if found is None:
        raise not_found()
    return found
