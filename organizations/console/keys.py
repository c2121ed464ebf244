"""API keys of the organization: made, shown once, revoked, by its owners."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django import forms
from django.conf import settings
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.html import format_html

from organizations import keys as service
from organizations.actors import Actor
from organizations.console import once
from organizations.console.access import ConsoleRequest, confirmed_by_post, permitted
from organizations.console.fields import ConsoleForm, OnceForm, PasswordForm, posted, status_of
from organizations.console.responses import done, page_or_sheet
from organizations.keys import ScopesRefused
from organizations.models import ApiKey, Membership
from organizations.rules.roles import scopes_for

# What somebody reads beside a scope, in the order of the form.
SCOPE_WORDS: Final = {
    "commands:read": "read commands and their diagnosis",
    "commands:issue": "put commands on record",
    "commands:dispatch": "send them from armed datasets",
    "commands:ack": "report what the vehicle did",
    "commands:retract": "withdraw them",
    "datasets:read": "read experiments and datasets",
    "datasets:write": "make experiments and datasets",
    "datasets:arm": "arm and disarm datasets",
    "endpoints:read": "read endpoints and their health",
    "endpoints:write": "change endpoints and their secrets; in an owner's name enable them, too",
    "deliveries:read": "read every attempt and its answer",
    "events:read": "read events",
    "events:write": "publish events",
}
NEVER: Final = "never"
LIFETIMES: Final = {
    NEVER: "Does not expire",
    "7": "Expires after 7 days",
    "30": "Expires after 30 days",
    "90": "Expires after 90 days",
    "365": "Expires after a year",
}
# A first call for each key, by the first of these that it may: what reads changes nothing.
FIRST_CALLS: Final = (
    ("commands:read", "GET", "/api/commands/list?limit=1", ""),
    ("events:read", "GET", "/api/events/types", ""),
    ("endpoints:read", "GET", "/api/webhooks/endpoints", ""),
    ("deliveries:read", "GET", "/api/webhooks/deliveries?limit=1", ""),
    ("datasets:read", "GET", "/api/datasets", ""),
    ("events:write", "POST", "/api/events", '{"type": "test.first_call", "data": {}}'),
    (
        "commands:ack",
        "POST",
        "/api/commands/ack",
        '{"commandId": "…", "outcome": "success"}',
    ),
)


class MemberField(forms.ModelChoiceField):  # type: ignore[type-arg]
    """A member, with his role: a key does not reach further."""

    def label_from_instance(self, member: Membership) -> str:
        return f"{member.user.email} ({member.role})"


class KeyForm(OnceForm, PasswordForm):
    """A new key."""

    name = forms.CharField(
        max_length=100,
        help_text="What it is for, such as the system that uses it.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    member = MemberField(
        Membership.objects.none(),
        label="In whose name",
        empty_label=None,
        help_text="What is done with it is done in this name, and stops when this person leaves.",
    )
    scopes = forms.MultipleChoiceField(
        choices=[
            (scope, format_html("<code>{}</code><span>{}</span>", scope, words))
            for scope, words in SCOPE_WORDS.items()
        ],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one: a key without a scope may do nothing."},
    )
    expires = forms.ChoiceField(label="Lifetime", choices=list(LIFETIMES.items()))

    def __init__(self, actor: Actor, data: Any = None) -> None:
        super().__init__(actor.user, data)
        field = self.fields["member"]
        assert isinstance(field, forms.ModelChoiceField)
        members = Membership.objects.filter(organization=actor.organization)
        field.queryset = members.select_related("user").order_by("user__email")
        field.initial = members.filter(user=actor.user).values_list("pk", flat=True).first()

    def clean(self) -> dict[str, Any]:
        """A key that its person's role does not carry would be refused at every call."""
        given = super().clean() or self.cleaned_data
        member, scopes = given.get("member"), given.get("scopes")
        if member and scopes and (beyond := sorted({*scopes} - {*scopes_for(member.role)})):
            self.add_error("scopes", f"Beyond the role {member.role}: {', '.join(beyond)}.")
        return given

    def expires_at(self, now: datetime) -> datetime | None:
        days = self.cleaned_data["expires"]
        return None if days == NEVER else now + timedelta(days=int(days))


@permitted("members:write")
@confirmed_by_post
def make(request: ConsoleRequest) -> HttpResponse:
    """A new key. Its text is on the answer to this very request and nowhere else: the form works once, so
    that a reload leads to the list.
    """
    form = KeyForm(request.actor, posted(request))
    if not form.is_valid():
        return _ask(request, form)
    wanted = form.cleaned_data
    if not once.take(wanted["token"]):
        return redirect("members")
    expires_at = form.expires_at(request.now)
    try:
        key, text = service.make(
            request.actor, wanted["member"].pk, wanted["name"], wanted["scopes"], expires_at
        )
    except (ScopesRefused, Membership.DoesNotExist):
        # The member got another role, or left, in this moment.
        once.give_back(wanted["token"])
        form.add_error("member", "This person's role has just changed. Look at it again.")
        return _ask(request, form)
    context = {"key": key, "text": text, "example": _first_call(key, text)}
    return render(request, "members/key_made.html", context, status=201)


def _ask(request: ConsoleRequest, form: KeyForm) -> HttpResponse:
    return render(request, "members/new_key.html", {"form": form}, status=status_of(form))


def _first_call(key: ApiKey, text: str) -> str:
    """A command line to try the key with; empty when each of its calls needs an id of something."""
    for scope, method, path, body in FIRST_CALLS:
        if scope in key.scopes:
            call = f'curl "{settings.CONSOLE_URL}{path}" -H "x-api-key: {text}"'
            if method == "GET":
                return call
            return f"{call} \\\n  -H \"Content-Type: application/json\" -d '{body}'"
    return ""


@permitted("members:write")
@confirmed_by_post
def revoke(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    """What stops with it; then, by POST, the key is refused for good."""
    keys = ApiKey.objects.filter(organization=request.actor.organization).select_related("user")
    key, form = keys.filter(pk=pk).first(), ConsoleForm(posted(request))
    if key is None:
        raise Http404
    if not form.is_valid():
        context = {"key": key, "form": form, "title": f"Revoke {key.name}"}
        return page_or_sheet(request, "members/_revoke.html", context)
    service.revoke(request.actor, key)
    return done(request, reverse("members"), f"{key.name} is revoked.")
