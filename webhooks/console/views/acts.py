"""What an owner does to endpoints: a page or sheet says what the act means, a POST does it."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.forms import Form
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect

from organizations.console import once
from organizations.console.access import ConsoleRequest, confirmed_by_post, permitted
from organizations.console.fields import ConsoleForm, posted, status_of
from organizations.console.responses import done, page_or_sheet
from webhooks import endpoints as service
from webhooks.console import rows
from webhooks.console.forms import DisableForm, EditForm, EnableForm, EndpointForm, RotateForm
from webhooks.console.pings import last_ping_of
from webhooks.console.rows import EndpointRow
from webhooks.endpoints import FieldRefused, NewEndpoint, Refused
from webhooks.rules.addresses import UrlNotAllowed

TITLES: Final = {
    "edit": "Edit",
    "ping": "Ping",
    "disable": "Disable",
    "enable": "Enable",
    "rotate_secret": "Rotate the secret of",
    "rotate_at_once": "Drop every old secret of",
    "archive": "Archive",
}


@permitted("endpoints:write")
@confirmed_by_post
def register(request: ConsoleRequest) -> HttpResponse:
    """A new endpoint. Its secret is on the answer to this very request and nowhere else: the form
    works once, so that a reload leads to the endpoint's page.
    """
    form = EndpointForm(posted(request))
    if not form.is_valid():
        return render(request, "endpoints/new.html", {"form": form}, status=status_of(form))
    token = form.cleaned_data.pop("token")
    if not once.take(token):
        return redirect(once.recall(token) or reverse("endpoints"))
    try:
        created = service.create(request.actor, NewEndpoint(**form.cleaned_data))
    except (UrlNotAllowed, FieldRefused) as refusal:
        once.give_back(token)
        form.refuse(getattr(refusal, "field", "url"), str(refusal))
        return render(request, "endpoints/new.html", {"form": form}, status=422)
    once.remember(token, page_of(created.endpoint.pk))
    context = {"endpoint": created.endpoint, "secret": created.secret}
    return render(request, "endpoints/registered.html", context, status=201)


@permitted("endpoints:write")
@confirmed_by_post
def edit(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """An endpoint's fields; then, by POST, what was changed of them."""
    row = rows.find(request.actor, pk)
    form = EditForm(row.endpoint, posted(request))
    if row.endpoint.archived_at:
        return _refused(request, row, Refused("endpoint_archived"))
    if not form.is_valid():
        return _ask(request, "edit", row, form)
    try:
        edited = service.edit(request.actor, pk, form.changes())
    except (UrlNotAllowed, FieldRefused) as refusal:
        form.refuse(getattr(refusal, "field", "url"), str(refusal))
        return _ask(request, "edit", row, form)
    except Refused as refusal:
        return _refused(request, row, refusal)
    said = f"{edited.name} is saved." if form.has_changed() else "Nothing was changed."
    messages.success(request, said)
    # The whole page anew: its name stands outside of what the page keeps up to date, too.
    return HttpResponseClientRedirect(page_of(pk)) if request.htmx else redirect(page_of(pk))


@permitted("endpoints:write")
@confirmed_by_post
def rotate_secret(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """What a new secret means; then, by POST, the answer to that very request shows it, once. Dropping
    the old ones at once is asked twice.
    """
    row, form = rows.find(request.actor, pk), RotateForm(posted(request))
    if row.endpoint.archived_at:
        return _refused(request, row, Refused("endpoint_archived"))
    if not form.is_valid():
        return _ask(request, "rotate_secret", row, form)
    if form.must_be_confirmed:
        return _ask(request, "rotate_at_once", row, form)
    token = form.cleaned_data["token"]
    if not once.take(token):
        return redirect(page_of(pk))
    try:
        rotated = service.rotate_secret(request.actor, pk, form.hours)
    except Refused as refusal:
        once.give_back(token)
        return _refused(request, row, refusal)
    context = {"endpoint": rotated.endpoint, "rotated": rotated, "secret": rotated.secret}
    return render(request, "endpoints/rotated.html", context | {"at_once": not form.hours})


@permitted("endpoints:write")
@confirmed_by_post
def archive(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """What is over for good; then, by POST, the endpoint is not used again."""
    row, form = rows.find(request.actor, pk), ConsoleForm(posted(request))
    if row.endpoint.archived_at:
        return _refused(request, row, Refused("endpoint_archived"))
    if not form.is_valid():
        return _ask(request, "archive", row, form)
    service.archive(request.actor, pk)
    return done(request, page_of(pk), f"{row.endpoint.name} is archived.")


@permitted("endpoints:write")
@confirmed_by_post
def disable(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """What disabling ends; then, by POST, nothing more is sent there."""
    row, form = rows.find(request.actor, pk), DisableForm(posted(request))
    if row.endpoint.archived_at:
        return _refused(request, row, Refused("endpoint_archived"))
    if not form.is_valid():
        return _ask(request, "disable", row, form)
    service.disable(request.actor, pk, form.cleaned_data["reason"])
    return done(request, page_of(pk), f"{row.endpoint.name} is disabled.")


@permitted("endpoints:write")
@confirmed_by_post
def ping(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """What a ping is; then, by POST, one is sent, also to a disabled endpoint."""
    row, form = rows.find(request.actor, pk), ConsoleForm(posted(request))
    if row.endpoint.archived_at:
        return _refused(request, row, Refused("endpoint_archived"))
    if not form.is_valid():
        return _ask(request, "ping", row, form)
    try:
        service.ping(request.actor, pk)
    except Refused as refusal:
        return _refused(request, row, refusal)
    return done(request, page_of(pk), "A ping is on its way.")


@permitted("endpoints:enable")
@confirmed_by_post
def enable(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """What enabling does and what not; then, by POST with the owner's password, it is used again."""
    row, form = rows.find(request.actor, pk), EnableForm(request.actor.user, posted(request))
    if row.endpoint.archived_at:
        return _refused(request, row, Refused("endpoint_archived"))
    if not form.is_valid():
        return _ask(request, "enable", row, form, ping=last_ping_of(row.endpoint))
    try:
        service.enable(request.actor, pk)
    except Refused as refusal:
        return _refused(request, row, refusal)
    return done(request, page_of(pk), f"{row.endpoint.name} is enabled.")


def page_of(pk: UUID) -> str:
    return reverse("endpoint", args=[pk])


def _ask(
    request: ConsoleRequest, act: str, row: EndpointRow, form: Form, **more: Any
) -> HttpResponse:
    """The act's page or sheet, with what is wrong with the form."""
    title = f"{TITLES[act]} {row.endpoint.name}"
    context = {"row": row, "endpoint": row.endpoint, "form": form, "title": title, **more}
    return page_or_sheet(request, f"endpoints/_{act}.html", context, status_of(form))


def _refused(request: ConsoleRequest, row: EndpointRow, refusal: Refused) -> HttpResponse:
    """Why the endpoint cannot do that; nothing was done."""
    context = {"endpoint": row.endpoint, "refused": refusal, "title": row.endpoint.name}
    return page_or_sheet(request, "endpoints/_refused.html", context, 409)
