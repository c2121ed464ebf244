"""Endpoints, and the attempts made at them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

from rest_framework.request import Request
from rest_framework.response import Response

from organizations.actors import Actor
from organizations.api import paging
from organizations.api.inputs import Nothing
from organizations.api.openapi import operation
from organizations.api.paging import page_of
from organizations.api.problems import Problem, invalid
from organizations.api.views import ApiView, id_of
from organizations.rules import roles
from webhooks import endpoints
from webhooks.api import attempts
from webhooks.api.serializers import (
    AttemptQuery,
    AttemptSerializer,
    CreatedEndpointSerializer,
    DisableInput,
    EndpointChanges,
    EndpointDetailSerializer,
    EndpointQuery,
    EndpointSerializer,
    NewEndpointInput,
    PingSerializer,
    RotatedEndpointSerializer,
    RotationInput,
)
from webhooks.endpoints import NewEndpoint
from webhooks.models import Endpoint
from webhooks.rules.addresses import UrlNotAllowed

# How the API names the fields of an endpoint that the services refuse.
FIELDS: Final = {
    "event_types": "eventTypes",
    "is_default": "isDefault",
    "max_in_flight": "maxInFlight",
    "receives_commands": "receivesCommands",
}


class EndpointApiView(ApiView):
    """A view of endpoints: what an endpoint may not be is a problem with its field."""

    def handle_exception(self, exc: Exception) -> Response:
        match exc:
            case UrlNotAllowed():
                exc = _url_not_allowed(exc)
            case endpoints.FieldRefused():
                exc = invalid({FIELDS.get(exc.field, exc.field): [str(exc)]})
            case endpoints.Refused():
                exc = Problem(HTTPStatus.CONFLICT, exc.code, str(exc))
        return super().handle_exception(exc)


class EndpointListView(EndpointApiView):
    @operation(
        "listEndpoints",
        "endpoints:read",
        "The organization's endpoints, newest first",
        {HTTPStatus.OK: page_of(EndpointSerializer, "Endpoint")},
        query=EndpointQuery,
    )
    def get(self, request: Request) -> Response:
        asked = self.query(EndpointQuery)
        mine = Endpoint.objects.filter(
            organization=self.actor.organization, archived_at__isnull=asked["archived"] == "false"
        )
        page = paging.read("endpoints", self.actor, asked, paging.newest_first(mine))
        return page.response(EndpointSerializer, _context(page.rows))

    @operation(
        "createEndpoint",
        "endpoints:write",
        "Register an endpoint; only this answer holds its signing secret",
        {HTTPStatus.CREATED: CreatedEndpointSerializer},
        body=NewEndpointInput,
    )
    def post(self, request: Request) -> Response:
        created = endpoints.create(self.actor, NewEndpoint(**self.body(NewEndpointInput)))
        context = {**_context([created.endpoint]), "secret": created.secret}
        shown = CreatedEndpointSerializer(created.endpoint, context=context)
        return Response(shown.data, HTTPStatus.CREATED)


class EndpointView(EndpointApiView):
    @operation(
        "getEndpoint",
        "endpoints:read",
        "An endpoint with its schedule and health",
        {HTTPStatus.OK: EndpointDetailSerializer},
        problems=[HTTPStatus.NOT_FOUND],
    )
    def get(self, request: Request, endpoint_id: str) -> Response:
        organization = self.actor.organization
        return _one(Endpoint.objects.get(pk=id_of(endpoint_id), organization=organization))

    @operation(
        "changeEndpoint",
        "endpoints:write",
        "Change an endpoint: counters of an enabled one start from zero, a disabled one stays so",
        {HTTPStatus.OK: EndpointDetailSerializer},
        body=EndpointChanges,
        problems=[HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT],
    )
    def patch(self, request: Request, endpoint_id: str) -> Response:
        changes = self.body(EndpointChanges)
        return _one(endpoints.edit(self.actor, id_of(endpoint_id), changes))


class DisableEndpointView(EndpointApiView):
    @operation(
        "disableEndpoint",
        "endpoints:write",
        "Disable an endpoint: no new attempt starts, and what waits ends failed",
        {HTTPStatus.OK: EndpointDetailSerializer},
        body=DisableInput,
        problems=[HTTPStatus.NOT_FOUND],
    )
    def post(self, request: Request, endpoint_id: str) -> Response:
        reason = self.body(DisableInput)["reason"]
        return _one(endpoints.disable(self.actor, id_of(endpoint_id), reason))


class EnableEndpointView(EndpointApiView):
    """The key needs endpoints:write, and its user must be an owner. A password is asked where a session
    may have been left open; a key is shown with each call.
    """

    @operation(
        "enableEndpoint",
        "endpoints:write",
        "Enable an endpoint again: its counters start from zero and nothing is replayed",
        {HTTPStatus.OK: EndpointDetailSerializer},
        body=Nothing,
        problems=[HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT],
        note="Only the key of an owner may. It stands for the password that the console asks for: ping"
        " first, and let no program enable by itself.",
    )
    def post(self, request: Request, endpoint_id: str) -> Response:
        self.body(Nothing)
        return _one(endpoints.enable(_enabling(self.actor), id_of(endpoint_id)))


class ArchiveEndpointView(EndpointApiView):
    @operation(
        "archiveEndpoint",
        "endpoints:write",
        "Use an endpoint no more, for good: what waits ends failed, its history stays",
        {HTTPStatus.OK: EndpointDetailSerializer},
        body=Nothing,
        problems=[HTTPStatus.NOT_FOUND],
    )
    def post(self, request: Request, endpoint_id: str) -> Response:
        self.body(Nothing)
        return _one(endpoints.archive(self.actor, id_of(endpoint_id)))


class RotateSecretView(EndpointApiView):
    @operation(
        "rotateEndpointSecret",
        "endpoints:write",
        "Sign with a new secret; only this answer holds it. The old one signs too until it expires",
        {HTTPStatus.OK: RotatedEndpointSerializer},
        body=RotationInput,
        problems=[HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT],
    )
    def post(self, request: Request, endpoint_id: str) -> Response:
        asked = self.body(RotationInput)
        rotated = endpoints.rotate_secret(self.actor, id_of(endpoint_id), **asked)
        context = {
            **_context([rotated.endpoint]),
            "secret": rotated.secret,
            "previous_expires_at": rotated.previous_expires_at,
        }
        return Response(RotatedEndpointSerializer(rotated.endpoint, context=context).data)


class PingEndpointView(EndpointApiView):
    @operation(
        "pingEndpoint",
        "endpoints:write",
        "Send one test to an endpoint, enabled or not: one attempt, which counts for no rule",
        {HTTPStatus.ACCEPTED: PingSerializer},
        body=Nothing,
        problems=[HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT],
        note="Its body is that of an event: `id`, `type` (`ping`), `timestamp`, and `data` with the"
        " endpoint's `id` and `name`.",
    )
    def post(self, request: Request, endpoint_id: str) -> Response:
        self.body(Nothing)
        delivery = endpoints.ping(self.actor, id_of(endpoint_id))
        return Response(PingSerializer(delivery).data, HTTPStatus.ACCEPTED)


class AttemptListView(ApiView):
    @operation(
        "listDeliveries",
        "deliveries:read",
        "Attempts to deliver, newest first: one row an attempt",
        {HTTPStatus.OK: page_of(AttemptSerializer, "Attempt")},
        query=AttemptQuery,
    )
    def get(self, request: Request) -> Response:
        asked = self.query(AttemptQuery)
        fetch = attempts.fetch_for(self.actor.organization, asked)
        page = paging.read("deliveries", self.actor, asked, fetch)
        return page.response(AttemptSerializer)


def _enabling(actor: Actor) -> Actor:
    """An owner may enable also through a key, although that permission is no scope of its own."""
    if actor.role != roles.OWNER:
        return actor
    return dataclasses.replace(actor, permissions=actor.permissions | {"endpoints:enable"})


def _context(found: Sequence[Endpoint]) -> dict[str, Any]:
    return {"rule": endpoints.health_of(found), "figures": endpoints.figures_of(found)}


def _one(endpoint: Endpoint) -> Response:
    return Response(EndpointDetailSerializer(endpoint, context=_context([endpoint])).data)


def _url_not_allowed(refusal: UrlNotAllowed) -> Problem:
    return Problem(
        HTTPStatus.BAD_REQUEST,
        "url_not_allowed",
        refusal.reason,
        errors={"url": [refusal.reason]},
    )
