"""What a method of a view is: its scope, which the permission check reads, and its description."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar

from drf_spectacular.extensions import (
    OpenApiAuthenticationExtension,
    OpenApiSerializerExtension,
)
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers

from organizations.api.authentication import HEADER
from organizations.api.inputs import Input
from organizations.api.problems import MEDIA_TYPE

View = TypeVar("View", bound=Callable[..., Any])
ALWAYS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
WITH_A_BODY = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.LENGTH_REQUIRED,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
)


class ProblemSerializer(serializers.Serializer[Any]):
    """A problem (RFC 9457)."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    code = serializers.CharField(help_text="For programs.")
    errors = serializers.DictField(  # type: ignore[assignment]
        child=serializers.ListField(child=serializers.CharField()),
        required=False,
        help_text="What is wrong, by field.",
    )


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The key in its header."""

    target_class = "organizations.api.authentication.ApiKeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "apiKey", "in": "header", "name": HEADER}


class ClosedInput(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """An input takes the fields that it lists and no others."""

    target_class = "organizations.api.inputs.Input"
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: str) -> dict[str, Any]:
        shape = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        return {**shape, "additionalProperties": False}


def operation(
    name: str,
    scope: str,
    summary: str,
    answers: Mapping[HTTPStatus, Any],
    *,
    body: type[Input] | None = None,
    query: type[Input] | None = None,
    problems: Iterable[HTTPStatus] = (),
    headers: Iterable[OpenApiParameter] = (),
    note: str = "",
) -> Callable[[View], View]:
    """Open one method of a view to keys with ``scope``, and describe it.

    ``problems`` are those beyond what every operation may answer; ``note`` says what the summary has no
    room for.
    """
    refused = {*ALWAYS, *problems}
    refused |= set(WITH_A_BODY) if body else set()
    refused |= {HTTPStatus.BAD_REQUEST} if query else set()
    responses: dict[Any, Any] = {
        (status.value, "application/json"): OpenApiResponse(shape, status.phrase)
        for status, shape in answers.items()
    }
    for status in sorted(refused):
        described = OpenApiResponse(ProblemSerializer, status.phrase)
        responses[(status.value, MEDIA_TYPE)] = described
    describe = extend_schema(
        operation_id=name,
        summary=summary,
        description=f"Needs the scope `{scope}`. {note}".rstrip(),
        request=body,
        responses=responses,
        parameters=[*([query] if query else []), *headers],
    )

    def decorate(method: View) -> View:
        described = describe(method)
        described.scope = scope  # type: ignore[attr-defined]
        return described

    return decorate
