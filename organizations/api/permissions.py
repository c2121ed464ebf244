"""What a key may do: each operation names the one scope that it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.exceptions import MethodNotAllowed, NotAuthenticated
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from organizations.actors import Actor
from organizations.api.authentication import HEADER
from organizations.api.problems import missing_scope

if TYPE_CHECKING:  # the framework reads its settings, this module among them, while it loads views
    from rest_framework.views import APIView


class HasScope(BasePermission):
    """The key holds the scope of the operation, as ``openapi.operation`` put it on the method.

    A method without a scope is answered 405: forgetting one never opens it.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not isinstance(request.auth, Actor):
            raise NotAuthenticated(
                f"Send an API key in the header {HEADER}.", code="missing_api_key"
            )
        method = getattr(view, str(request.method).lower(), None)
        scope: str | None = getattr(method, "scope", None)
        if scope is None:
            raise MethodNotAllowed(str(request.method))
        if not request.auth.may(scope):
            raise missing_scope(scope)
        return True
