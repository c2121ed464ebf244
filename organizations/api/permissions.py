"""What a key may do: each method of a view names the one scope that it needs."""

from __future__ import annotations

from rest_framework.exceptions import MethodNotAllowed, NotAuthenticated
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from organizations.actors import Actor
from organizations.api.authentication import HEADER
from organizations.api.problems import missing_scope


class HasScope(BasePermission):
    """The key holds the scope that the view's ``scopes`` give for the method.

    A method without a scope is answered 405: forgetting one never opens it.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not isinstance(request.auth, Actor):
            raise NotAuthenticated(
                f"Send an API key in the header {HEADER}.", code="missing_api_key"
            )
        method = "GET" if request.method == "HEAD" else str(request.method)
        scope: str | None = getattr(view, "scopes", {}).get(method)
        if scope is None:
            raise MethodNotAllowed(str(request.method))
        if not request.auth.may(scope):
            raise missing_scope(scope)
        return True
