"""What an operator does to a command: dispatch, retract, reissue. Each is shown before it is done."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect

from commands import issuing, lifecycle, queries
from commands.console.forms import DispatchForm, ReissueForm, RetractForm
from commands.console.page import find
from commands.errors import DispatchRefused, Refused
from commands.models import Command
from commands.rules import dispatching
from commands.rules.states import ACK_TIMEOUT_DEFAULT_S, REISSUABLE
from organizations.console.access import ConsoleRequest, confirmed_by_post, permitted
from organizations.console.fields import posted, status_of
from organizations.console.responses import done, page_or_sheet
from webhooks.console.rows import row_of


@permitted("commands:dispatch")
@confirmed_by_post
def dispatch(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """Where it would go, how and until when; then, by POST, off it goes."""
    command = find(request.actor, pk)
    if request.method != "POST":
        return _preview(request, command, DispatchForm())
    form = DispatchForm(request.POST)
    if not form.is_valid():
        return _preview(request, command, form, status=422)
    if form.taken():
        return done(request, _page(pk), "This was submitted before.")
    try:
        lifecycle.dispatch(request.actor, pk, form.cleaned_data["ack_timeout"])
    except DispatchRefused as refusal:
        again = DispatchForm(initial={"ack_timeout": form.cleaned_data["ack_timeout"]})
        return _preview(request, find(request.actor, pk), again, refused=refusal, status=409)
    return done(request, _page(pk), "Dispatched.")


def _preview(
    request: ConsoleRequest,
    command: Command,
    form: DispatchForm,
    refused: Refused | None = None,
    status: int = 200,
) -> HttpResponse:
    endpoint = queries.endpoint_for(command.dataset)
    code = dispatching.refusal(queries.readiness(command, command.dataset, endpoint))
    context: dict[str, Any] = {
        "command": command,
        "form": form,
        "endpoint": endpoint,
        "row": row_of(endpoint) if endpoint else None,
        "deadline": request.now + timedelta(seconds=ACK_TIMEOUT_DEFAULT_S),
        "refusal_code": code,
        "obstacle": str(refused) if refused else DispatchRefused.sentences.get(code or "", ""),
        "was_refused": refused is not None,
        "title": f"Dispatch {command.name}",
    }
    return page_or_sheet(request, "commands/_dispatch.html", context, status)


@permitted("commands:retract")
@confirmed_by_post
def retract(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """What a retraction recalls and what not; then, by POST, the command is withdrawn."""
    command = find(request.actor, pk)
    form = RetractForm(posted(request))
    if not form.is_valid():
        context = {"command": command, "form": form, "title": f"Retract {command.name}"}
        return page_or_sheet(request, "commands/_retract.html", context, status_of(form))
    retracted = lifecycle.retract(request.actor, pk, form.cleaned_data["reason"])
    message = "Retracted. No further attempt starts."
    if retracted.attempt_on_the_wire:
        message = "Retracted, with an attempt on the wire: its outcome will be recorded."
    return done(request, _page(pk), message)


@permitted("commands:issue")
@confirmed_by_post
def reissue(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """The same order as a new command; then, by POST, on to its page."""
    command = find(request.actor, pk)
    form = ReissueForm(posted(request))
    if not form.is_valid():
        return _reissue_form(request, command, form, status=status_of(form))
    try:
        issued = issuing.reissue(request.actor, pk, form.cleaned_data["client_token"])
    except Refused as refusal:
        form.add_error("client_token", str(refusal))
        return _reissue_form(request, command, form, status=409)
    page = _page(issued.command.pk)
    return HttpResponseClientRedirect(page) if request.htmx else redirect(page)


def _reissue_form(
    request: ConsoleRequest, command: Command, form: ReissueForm, status: int
) -> HttpResponse:
    context = {
        "command": command,
        "form": form,
        "possible": command.state in REISSUABLE,
        "title": f"Reissue {command.name}",
    }
    return page_or_sheet(request, "commands/_reissue.html", context, status)


def _page(command_id: UUID) -> str:
    return reverse("command", args=[command_id])
