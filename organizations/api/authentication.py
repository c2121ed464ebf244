"""Who calls: the key in the ``x-api-key`` header, and nowhere else."""

from __future__ import annotations

from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from organizations import keys
from organizations.actors import Actor
from organizations.models import User

HEADER = "x-api-key"


class ApiKeyAuthentication(BaseAuthentication):
    """Sets ``request.auth`` to the Actor behind the key.

    A key in the address would end up in logs and histories, so only the header is read.
    """

    def authenticate(self, request: Request) -> tuple[User, Actor] | None:
        text = request.headers.get(HEADER)
        if text is None:
            return None
        try:
            actor = keys.authenticate(text, request.META.get("REMOTE_ADDR") or None)
        except keys.InvalidKey:
            raise AuthenticationFailed(
                "The API key is unknown, expired or revoked.", code="invalid_api_key"
            ) from None
        return actor.user, actor

    def authenticate_header(self, request: Request) -> str:
        return f'ApiKey realm="api", header="{HEADER}"'
