"""Commands: issued, dispatched, reported on, retracted, read."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from operator import attrgetter
from typing import Any

from django.db.models import Prefetch
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from commands import issuing, lifecycle, queries
from commands.api.serializers import (
    AckInput,
    CommandDetailSerializer,
    CommandQuery,
    CommandSerializer,
    DispatchInput,
    IssueInput,
    RetractedCommandSerializer,
    RetractInput,
)
from commands.errors import Refused
from commands.models import Command, CommandEvent, Dataset
from commands.queries import Filters, Span
from commands.rules.reports import Outcome, Reception
from organizations.api import paging
from organizations.api.fields import NO_ID
from organizations.api.openapi import operation
from organizations.api.paging import page_of
from organizations.api.problems import Problem
from organizations.api.views import ApiView, id_of
from organizations.patience import TookTooLong

REPLAYED = "Idempotency-Replayed"
TOO_BROAD = "The search was given up: narrow its time by since and until."


class CommandApiView(ApiView):
    """Answers a refusal of the lifecycle with 409 and its code, an endless search with 400."""

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, Refused):
            exc = Problem(HTTPStatus.CONFLICT, exc.code, str(exc))
        if isinstance(exc, TookTooLong):
            exc = Problem(HTTPStatus.BAD_REQUEST, "search_too_broad", TOO_BROAD)
        return super().handle_exception(exc)


class IssueView(CommandApiView):
    @operation(
        "issueCommand",
        "commands:issue",
        "Put a command on record; the same clientToken again returns the same command",
        {HTTPStatus.CREATED: CommandSerializer, HTTPStatus.OK: CommandSerializer},
        body=IssueInput,
        problems=[HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT],
        headers=[
            OpenApiParameter(
                REPLAYED,
                str,
                OpenApiParameter.HEADER,
                response=[HTTPStatus.OK.value],
                description="`true`: the command existed already.",
            )
        ],
    )
    def post(self, request: Request) -> Response:
        asked = self.body(IssueInput)
        dataset = Dataset.objects.get(
            pk=id_of(asked.pop("dataset_id")), organization=self.actor.organization
        )
        issued = issuing.issue(self.actor, dataset, **asked)
        shown = CommandSerializer(issued.command).data
        if issued.created:
            return Response(shown, HTTPStatus.CREATED)
        return Response(shown, headers={REPLAYED: "true"})


class DispatchView(CommandApiView):
    @operation(
        "dispatchCommand",
        "commands:dispatch",
        "Send a command to the endpoint of its dataset",
        {HTTPStatus.ACCEPTED: CommandSerializer},
        body=DispatchInput,
        problems=[HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT],
    )
    def post(self, request: Request) -> Response:
        asked = self.body(DispatchInput)
        command = lifecycle.dispatch(self.actor, id_of(asked["command_id"]), asked["ack_timeout_s"])
        # Its times were the database's to set; its first attempt may have begun since.
        assert command.delivery
        command.delivery.refresh_from_db()
        return Response(CommandSerializer(command).data, HTTPStatus.ACCEPTED)


class AckView(CommandApiView):
    @operation(
        "acknowledgeCommand",
        "commands:ack",
        "Report what the vehicle did; a report before the delivery is recorded is kept (202)",
        {HTTPStatus.OK: CommandSerializer, HTTPStatus.ACCEPTED: CommandSerializer},
        body=AckInput,
        problems=[HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT],
    )
    def post(self, request: Request) -> Response:
        asked = self.body(AckInput)
        reported = lifecycle.acknowledge(
            self.actor, id_of(asked["command_id"]), Outcome(asked["outcome"]), asked["detail"]
        )
        early = reported.reception == Reception.KEPT_EARLY
        status = HTTPStatus.ACCEPTED if early else HTTPStatus.OK
        return Response(CommandSerializer(reported.command).data, status)


class RetractView(CommandApiView):
    @operation(
        "retractCommand",
        "commands:retract",
        "Withdraw a command: no further attempt starts; an attempt on the wire is not recalled",
        {HTTPStatus.OK: RetractedCommandSerializer},
        body=RetractInput,
        problems=[HTTPStatus.NOT_FOUND],
    )
    def post(self, request: Request) -> Response:
        asked = self.body(RetractInput)
        retracted = lifecycle.retract(self.actor, id_of(asked["command_id"]), asked["reason"])
        context = {"on_the_wire": retracted.attempt_on_the_wire}
        return Response(RetractedCommandSerializer(retracted.command, context=context).data)


class CommandListView(CommandApiView):
    @operation(
        "listCommands",
        "commands:read",
        "The organization's commands, newest first",
        {HTTPStatus.OK: page_of(CommandSerializer, "Command")},
        query=CommandQuery,
    )
    def get(self, request: Request) -> Response:
        asked = self.query(CommandQuery)
        filters = self._filters(asked)

        def fetch(before: str | None, count: int) -> Sequence[Command]:
            found = queries.matching(self.actor.organization, filters, Span(before=before))
            return list(queries.without_parameters(found)[:count])

        with queries.searching(filters):
            page = paging.read("commands", self.actor, asked, fetch, attrgetter("parameters_size"))
        queries.read_parameters(page.rows)
        return page.response(CommandSerializer)

    def _filters(self, asked: dict[str, Any]) -> Filters:
        wanted = {k: v for k, v in asked.items() if k not in ("cursor", "limit")}
        if email := wanted.pop("issued_by", None):
            wanted["issued_by_id"] = queries.issuer_id(email) or NO_ID
        if start := wanted.pop("api_key", None):
            wanted["api_key_id"] = queries.api_key_id(self.actor.organization, start) or NO_ID
        return Filters(**wanted)


class CommandView(CommandApiView):
    @operation(
        "getCommand",
        "commands:read",
        "A command with its timeline, what happened to it and what to do next",
        {HTTPStatus.OK: CommandDetailSerializer},
        problems=[HTTPStatus.NOT_FOUND],
    )
    def get(self, request: Request, command_id: str) -> Response:
        timeline = CommandEvent.objects.select_related("user").order_by("pk")
        commands = queries.of_organization(self.actor.organization)
        command = commands.prefetch_related(Prefetch("timeline", timeline)).get(
            pk=id_of(command_id)
        )
        return Response(CommandDetailSerializer(command).data)
