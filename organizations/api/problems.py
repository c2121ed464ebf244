"""Every error of the API as ``application/problem+json`` (RFC 9457), whoever raised it.

Problems that the API framework sees come through ``exception_handler``; what Django itself answers
(no such address, a crash) comes through the handlers at the end, which leave every other page alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404, HttpRequest, HttpResponse
from django.views import defaults
from rest_framework import exceptions

from organizations import exact_json
from organizations.actors import NotPermitted

MEDIA_TYPE = "application/problem+json"
API_ROOT = "/api/"
Errors = dict[str, list[str]]


class Problem(Exception):
    """A request that is refused: ``code`` is for programs, ``detail`` a sentence for people."""

    def __init__(
        self,
        status: HTTPStatus,
        code: str,
        detail: str,
        *,
        errors: Errors | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status = status
        self.code = code
        self.detail = detail
        self.errors = errors
        self.headers = headers or {}
        super().__init__(detail)

    def response(self) -> HttpResponse:
        """The answer to the client."""
        body: dict[str, Any] = {
            "type": "about:blank",
            "title": self.status.phrase,
            "status": self.status.value,
            "detail": self.detail,
            "code": self.code,
        }
        if self.errors is not None:
            body["errors"] = self.errors
        return HttpResponse(
            exact_json.dumps(body),
            status=self.status,
            content_type=MEDIA_TYPE,
            headers=dict(self.headers),
        )


def not_found() -> Problem:
    """The same for what does not exist and for what another organization has."""
    return Problem(HTTPStatus.NOT_FOUND, "not_found", "There is nothing here by that name or id.")


def invalid(errors: Errors) -> Problem:
    """Fields that break a rule, each with what is wrong with it."""
    names = ", ".join(sorted(errors)[:10])
    return Problem(
        HTTPStatus.BAD_REQUEST, "validation_error", f"Correct these: {names}.", errors=errors
    )


def missing_scope(scope: str) -> Problem:
    """The key may not do this."""
    detail = f"This needs the scope {scope}, which the key or the role of its user does not have."
    return Problem(HTTPStatus.FORBIDDEN, "missing_scope", detail)


def exception_handler(exc: Exception, context: dict[str, Any]) -> HttpResponse | None:
    """The answer to what a view raised; None for a crash, which Django logs and answers with 500."""
    problem = _problem(exc)
    return problem.response() if problem else None


def _problem(exc: Exception) -> Problem | None:
    match exc:
        case Problem():
            return exc
        case Http404() | ObjectDoesNotExist():
            return not_found()
        case NotPermitted():
            return missing_scope(exc.permission)
        case exceptions.ValidationError():
            return invalid(_by_field(exc.detail))
        case exceptions.APIException():
            return _of_framework(exc)
        case _:
            return None


def _of_framework(exc: exceptions.APIException) -> Problem:
    challenge = getattr(exc, "auth_header", None)
    return Problem(
        HTTPStatus(exc.status_code),
        str(exc.get_codes()),
        str(exc.detail),
        headers={"WWW-Authenticate": challenge} if challenge else None,
    )


def _by_field(detail: Any) -> Errors:
    errors: Errors = {}
    for path, message in _messages(detail, ()):
        errors.setdefault(".".join(path) or "body", []).append(message)
    return errors


def _messages(detail: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Each message with the way to its field; a list's member goes by its number."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            step = () if name == "non_field_errors" else (str(name),)
            yield from _messages(inner, path + step)
    elif isinstance(detail, list):
        for inner in detail:
            yield from _messages(inner, path)
    else:
        yield path, str(detail)


# --- what Django answers itself -----------------------------------------------------------------


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404: a problem under the API, else the site's page."""
    if _is_api(request):
        return not_found().response()
    return defaults.page_not_found(request, exception)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400 for what Django finds suspicious, such as a host it does not serve."""
    if _is_api(request):
        return Problem(
            HTTPStatus.BAD_REQUEST, "bad_request", "The request is not one that we answer."
        ).response()
    return defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403 outside of a view."""
    if _is_api(request):
        return Problem(HTTPStatus.FORBIDDEN, "permission_denied", "You may not do this.").response()
    return defaults.permission_denied(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """500: what went wrong is in the log and nowhere else."""
    if _is_api(request):
        return Problem(
            HTTPStatus.INTERNAL_SERVER_ERROR,
            "internal_error",
            "Something failed on our side. The request may or may not have taken effect.",
        ).response()
    return defaults.server_error(request)


def _is_api(request: HttpRequest) -> bool:
    return f"{request.path_info}/".startswith(API_ROOT)
