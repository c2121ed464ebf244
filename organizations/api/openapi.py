"""Describes the API: each operation with its scope and every problem that it may answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar

from drf_spectacular.extensions import OpenApiAuthenticationExtension
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
    errors = serializers.DictField(
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


def operation(
    name: str,
    summary: str,
    answers: Mapping[HTTPStatus, Any],
    *,
    body: type[Input] | None = None,
    query: type[Input] | None = None,
    problems: Iterable[HTTPStatus] = (),
    headers: Iterable[OpenApiParameter] = (),
) -> Callable[[View], View]:
    """Describe one method of a view. ``problems`` are those beyond what every operation may answer."""
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
    return extend_schema(
        operation_id=name,
        summary=summary,
        request=body,
        responses=responses,
        parameters=[*([query] if query else []), *headers],
    )
