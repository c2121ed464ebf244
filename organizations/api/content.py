"""Bodies in and out: exact JSON, counted in bytes before anything looks at them."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import IO, Any

from django.conf import settings
from django.http import HttpRequest
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from organizations import exact_json
from organizations.api.problems import Problem


class JsonRenderer(BaseRenderer):
    """JSON in which every number has the digits it came with."""

    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        return exact_json.dumps(data).encode()


class JsonParser(BaseParser):
    """JSON that can be kept and sent on unchanged; anything else is ``malformed_json``."""

    media_type = "application/json"

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        body: bytes = stream.read()
        try:
            value = exact_json.loads(body)
            if b"\\ud" in body.lower():  # the only way to half of a surrogate pair
                exact_json.dumps(value)
        except exact_json.NotExactJson as error:
            raise Problem(HTTPStatus.BAD_REQUEST, "malformed_json", str(error)) from None
        return value


class JsonWhateverIsAccepted(DefaultContentNegotiation):
    """Answers in JSON, which is all there is, and leaves the ``Accept`` header aside."""

    def select_renderer(  # type: ignore[override]
        self,
        request: Request,
        renderers: Sequence[BaseRenderer],
        format_suffix: str | None = None,
    ) -> tuple[BaseRenderer, str]:
        return renderers[0], renderers[0].media_type


def admit_body(request: HttpRequest) -> None:
    """Refuse a body over MAX_BODY_BYTES, whether its length is declared or found by reading.

    Django takes a chunked body for an empty one: it is read here, and given its length.
    """
    declared = request.META.get("CONTENT_LENGTH") or ""
    if declared.isdecimal():
        _check_size(int(declared))
    elif "HTTP_TRANSFER_ENCODING" in request.META:
        body = _read_chunked(request)
        _check_size(len(body))
        request._stream = io.BytesIO(body)
        request.META["CONTENT_LENGTH"] = str(len(body))


def _read_chunked(request: HttpRequest) -> bytes:
    # Only a server that says so marks the end of the input; on another, reading would wait for ever.
    if not request.META.get("wsgi.input_terminated"):
        raise Problem(
            HTTPStatus.LENGTH_REQUIRED, "length_required", "Send the body with a Content-Length."
        )
    body: bytes = request.META["wsgi.input"].read(settings.MAX_BODY_BYTES + 1)
    return body


def _check_size(size: int) -> None:
    if size > settings.MAX_BODY_BYTES:
        raise Problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            "body_too_large",
            f"The body is larger than {settings.MAX_BODY_BYTES} bytes. Nothing was made.",
        )
