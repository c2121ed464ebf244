"""Endpoints, and the attempts made at them."""

from __future__ import annotations

import dataclasses
from http import HTTPStatus

from rest_framework.request import Request
from rest_framework.response import Response

from organizations.actors import Actor
from organizations.api import paging
from organizations.api.inputs import Nothing
from organizations.api.openapi import operation
from organizations.api.paging import PageQuery, page_of
from organizations.api.problems import Problem
from organizations.api.views import ApiView, id_of
from organizations.rules import roles
from webhooks import endpoints
from webhooks.api import attempts
from webhooks.api.serializers import (
    AttemptQuery,
    AttemptSerializer,
    CreatedEndpointSerializer,
    DisableInput,
    EndpointSerializer,
    NewEndpointInput,
)
from webhooks.models import Endpoint
from webhooks.rules.addresses import UrlNotAllowed


class EndpointListView(ApiView):
    @operation(
        "listEndpoints",
        "endpoints:read",
        "The organization's endpoints, newest first",
        {HTTPStatus.OK: page_of(EndpointSerializer, "Endpoint")},
        query=PageQuery,
    )
    def get(self, request: Request) -> Response:
        rows = paging.newest_first(Endpoint.objects.filter(organization=self.actor.organization))
        page = paging.read("endpoints", self.actor, self.query(PageQuery), rows)
        return page.response(EndpointSerializer, {"health": endpoints.health_of(page.rows)})

    @operation(
        "createEndpoint",
        "endpoints:write",
        "Register an endpoint; only this answer holds its signing secret",
        {HTTPStatus.CREATED: CreatedEndpointSerializer},
        body=NewEndpointInput,
    )
    def post(self, request: Request) -> Response:
        wanted = endpoints.NewEndpoint(**self.body(NewEndpointInput))
        try:
            created = endpoints.create(self.actor, wanted)
        except UrlNotAllowed as refusal:
            raise _url_not_allowed(refusal) from None
        context = {"health": endpoints.health_of([created.endpoint]), "secret": created.secret}
        shown = CreatedEndpointSerializer(created.endpoint, context=context)
        return Response(shown.data, HTTPStatus.CREATED)


class EndpointView(ApiView):
    @operation(
        "getEndpoint",
        "endpoints:read",
        "An endpoint with its health",
        {HTTPStatus.OK: EndpointSerializer},
        problems=[HTTPStatus.NOT_FOUND],
    )
    def get(self, request: Request, endpoint_id: str) -> Response:
        organization = self.actor.organization
        return _one(Endpoint.objects.get(pk=id_of(endpoint_id), organization=organization))


class DisableEndpointView(ApiView):
    @operation(
        "disableEndpoint",
        "endpoints:write",
        "Disable an endpoint: no new attempt starts, and what waits ends failed",
        {HTTPStatus.OK: EndpointSerializer},
        body=DisableInput,
        problems=[HTTPStatus.NOT_FOUND],
    )
    def post(self, request: Request, endpoint_id: str) -> Response:
        reason = self.body(DisableInput)["reason"]
        return _one(endpoints.disable(self.actor, id_of(endpoint_id), reason))


class EnableEndpointView(ApiView):
    """The key needs endpoints:write, and its user must be an owner."""

    @operation(
        "enableEndpoint",
        "endpoints:write",
        "Enable an endpoint again: its counters start from zero and nothing is replayed",
        {HTTPStatus.OK: EndpointSerializer},
        body=Nothing,
        problems=[HTTPStatus.NOT_FOUND],
    )
    def post(self, request: Request, endpoint_id: str) -> Response:
        self.body(Nothing)
        return _one(endpoints.enable(_enabling(self.actor), id_of(endpoint_id)))


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


def _one(endpoint: Endpoint) -> Response:
    context = {"health": endpoints.health_of([endpoint])}
    return Response(EndpointSerializer(endpoint, context=context).data)


def _url_not_allowed(refusal: UrlNotAllowed) -> Problem:
    return Problem(
        HTTPStatus.BAD_REQUEST,
        "url_not_allowed",
        refusal.reason,
        errors={"url": [refusal.reason]},
    )
