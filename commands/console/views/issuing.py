"""Issuing a command, and its parameters checked while they are typed."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from commands import issuing
from commands.console.forms import IssueForm, parameters_of
from commands.errors import IssueRefused
from organizations.console.access import ConsoleRequest, permitted


@permitted("commands:issue")
@require_http_methods(["GET", "HEAD", "POST"])
def issue(request: ConsoleRequest) -> HttpResponse:
    """The form for a new command; issuing it leads to the command's page."""
    organization = request.actor.organization
    if request.method != "POST":
        wanted = {"dataset": request.GET.get("dataset")}
        return _form(request, IssueForm(organization, initial=wanted))
    form = IssueForm(organization, request.POST)
    if not form.is_valid():
        return _form(request, form, status=422)
    try:
        issued = issuing.issue(request.actor, **form.cleaned_data)
    except IssueRefused as refusal:
        form.add_error("client_token", str(refusal))
        return _form(request, form, status=409)
    return redirect("command", issued.command.pk)


def _form(request: ConsoleRequest, form: IssueForm, status: int = 200) -> HttpResponse:
    return render(request, "commands/new.html", {"form": form}, status=status)


@permitted("commands:issue")
@require_POST
def check_parameters(request: ConsoleRequest) -> HttpResponse:
    """What the server would say to these parameters; nothing is kept."""
    context: dict[str, Any] = {}
    try:
        context["count"] = len(parameters_of(request.POST.get("parameters", "")))
    except forms.ValidationError as error:
        context["error"] = error.messages[0]
    return render(request, "commands/_parameters_check.html", context)
