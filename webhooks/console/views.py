"""Endpoints: how they do, what was sent to them; registering, disabling and enabling one."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from organizations.console import once
from organizations.console.access import ConsoleRequest, permitted
from organizations.console.responses import done, live, page_or_sheet, revision_of, unchanged
from webhooks import endpoints as service
from webhooks.console import rows
from webhooks.console.forms import DisableForm, EndpointForm
from webhooks.endpoints import FieldRefused, NewEndpoint, Refused
from webhooks.policies import POLICIES
from webhooks.rules.addresses import UrlNotAllowed

confirmed_by_post = require_http_methods(["GET", "HEAD", "POST"])


@permitted("endpoints:read")
@require_safe
def endpoints(request: ConsoleRequest) -> HttpResponse:
    """Every endpoint with its health."""
    found = rows.endpoint_rows(request.actor.organization)
    revision = revision_of([_shown(row) for row in found])
    if answer := unchanged(request, revision):
        return answer
    return live(request, "endpoints/list.html", "endpoints/_list.html", {"rows": found}, revision)


@permitted("endpoints:read")
@require_safe
def endpoint(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """One endpoint: its schedule, its health, its attempts."""
    row = rows.find(request.actor, pk)
    before = request.GET.get("before", "")
    page = rows.attempts_of(row.endpoint, int(before) if before.isdecimal() else None)
    revision = revision_of(_shown(row), page)
    if answer := unchanged(request, revision):
        return answer
    policy = row.endpoint.schedule
    context = {
        "row": row,
        "endpoint": row.endpoint,
        "page": page,
        "policy": policy,
        "schedule": rows.schedule_of(policy),
        "policies": POLICIES,
        "at_the_top": not before,
    }
    return live(request, "endpoints/detail.html", "endpoints/_live.html", context, revision)


def _shown(row: rows.EndpointRow) -> tuple[object, ...]:
    """Whatever of an endpoint can change on a page."""
    e = row.endpoint
    return (
        e.pk,
        e.name,
        e.url,
        e.policy,
        e.is_default,
        e.enabled,
        e.disabled_at,
        e.archived_at,
        row.health,
    )


@permitted("endpoints:write")
@confirmed_by_post
def register(request: ConsoleRequest) -> HttpResponse:
    """A new endpoint. Its secret is on the answer to this very request and nowhere else: the form
    works once, so that a reload leads to the endpoint's page.
    """
    form = EndpointForm(request.POST if request.method == "POST" else None)
    if not form.is_valid():
        return render(request, "endpoints/new.html", {"form": form}, status=_status(form))
    token = form.cleaned_data.pop("token")
    if not once.take(token):
        return redirect(once.recall(token) or reverse("endpoints"))
    try:
        created = service.create(request.actor, NewEndpoint(**form.cleaned_data))
    except (UrlNotAllowed, FieldRefused) as refusal:
        once.give_back(token)
        form.refuse(getattr(refusal, "field", "url"), str(refusal))
        return render(request, "endpoints/new.html", {"form": form}, status=422)
    once.remember(token, reverse("endpoint", args=[created.endpoint.pk]))
    context = {"endpoint": created.endpoint, "secret": created.secret}
    return render(request, "endpoints/registered.html", context, status=201)


@permitted("endpoints:write")
@confirmed_by_post
def disable(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """What disabling ends; then, by POST, nothing more is sent there."""
    row = rows.find(request.actor, pk)
    form = DisableForm(request.POST if request.method == "POST" else None)
    if not form.is_valid():
        title = f"Disable {row.endpoint.name}"
        context = {"endpoint": row.endpoint, "form": form, "title": title}
        return page_or_sheet(request, "endpoints/_disable.html", context, _status(form))
    service.disable(request.actor, pk, form.cleaned_data["reason"])
    return done(request, reverse("endpoint", args=[pk]), f"{row.endpoint.name} is disabled.")


@permitted("endpoints:enable")
@confirmed_by_post
def enable(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """What enabling does and what not; then, by POST, the endpoint is used again."""
    row = rows.find(request.actor, pk)
    context = {"row": row, "endpoint": row.endpoint, "title": f"Enable {row.endpoint.name}"}
    if request.method != "POST":
        return page_or_sheet(request, "endpoints/_enable.html", context)
    try:
        service.enable(request.actor, pk)
    except Refused as refusal:
        return page_or_sheet(request, "endpoints/_enable.html", context | {"refused": refusal}, 409)
    return done(request, reverse("endpoint", args=[pk]), f"{row.endpoint.name} is enabled.")


def _status(form: EndpointForm | DisableForm) -> int:
    return 422 if form.is_bound else 200
