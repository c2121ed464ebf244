"""The Members and keys page, and what an owner does there to members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRedirect

from organizations import accounts, trail
from organizations import members as service
from organizations.actors import Actor
from organizations.console import once
from organizations.console.access import ConsoleRequest, confirmed_by_post, permitted
from organizations.console.fields import ConsoleForm, OnceForm, PasswordForm, posted, status_of
from organizations.console.responses import (
    done,
    live,
    page_or_sheet,
    revision_of,
    unchanged,
)
from organizations.members import Invited
from organizations.models import ApiKey, Membership, User
from organizations.rules import roles

# Rows of a page, of members as of keys; "more" leads on by key.
PAGE_SIZE: Final = 100
MEANINGS: Final = {
    roles.OWNER: "Owner: everything. Alone changes endpoints, members and keys, and reads the audit.",
    roles.OPERATOR: "Operator: issues, dispatches and retracts commands; arms and disarms datasets.",
    roles.VIEWER: "Viewer: reads.",
}


@dataclass(frozen=True)
class MemberRow:
    """A member as the page shows him. ``stays`` is the last owner, who neither leaves nor steps down."""

    membership: Membership
    stays: bool

    @property
    def is_invited(self) -> bool:
        return not self.membership.user.has_usable_password()


@dataclass(frozen=True)
class KeyRow:
    """A key as the page shows it, with the address of whoever made it, if that is on record."""

    key: ApiKey
    made_by: str
    now: datetime

    @property
    def is_usable(self) -> bool:
        return self.key.usable(self.now)

    @property
    def reach(self) -> str:
        """Its scopes in a few words; all of them are shown on demand."""
        count = len(self.key.scopes)
        return self.key.scopes[0] if count == 1 else f"{count} scopes"


@dataclass(frozen=True)
class Page:
    """Members by address and keys, the newest first; cursors lead on where there are more."""

    members: Sequence[MemberRow]
    more_members: str
    keys: Sequence[KeyRow]
    more_keys: str


@permitted("members:write")
@require_safe
def members(request: ConsoleRequest) -> HttpResponse:
    """Who belongs to the organization, and which keys act for it."""
    page = _page_of(request)
    revision = revision_of(
        [_shown_member(row) for row in page.members],
        [_shown_key(row) for row in page.keys],
    )
    if answer := unchanged(request, revision):
        return answer
    context = {"page": page, "narrowed": bool(request.GET)}
    return live(request, "members/list.html", "members/_list.html", context, revision)


def _page_of(request: ConsoleRequest) -> Page:
    members, more_members = _members(request.actor, request.GET.get("after", ""))
    found_keys, more_keys = _keys(request.actor, request.GET.get("keys_after", ""))
    makers = trail.makers_of(found_keys)
    return Page(
        members,
        more_members,
        [KeyRow(key, makers.get(key.pk, ""), request.now) for key in found_keys],
        more_keys,
    )


def _members(actor: Actor, after: str) -> tuple[list[MemberRow], str]:
    rows = Membership.objects.filter(organization=actor.organization, user__email__gt=after)
    found = list(rows.select_related("user").order_by("user__email")[: PAGE_SIZE + 1])
    able = {m.pk for m in service.able_owners(actor.organization.pk)[:2]}
    shown = [MemberRow(m, m.role == roles.OWNER and able <= {m.pk}) for m in found[:PAGE_SIZE]]
    return shown, shown[-1].membership.user.email if len(found) > PAGE_SIZE else ""


def _keys(actor: Actor, after: str) -> tuple[list[ApiKey], str]:
    rows = ApiKey.objects.filter(organization=actor.organization)
    try:
        rows = rows.filter(pk__lt=forms.UUIDField().clean(after)) if after else rows
    except forms.ValidationError:
        raise Http404 from None
    found = list(rows.select_related("user").order_by("-pk")[: PAGE_SIZE + 1])
    shown = found[:PAGE_SIZE]
    return shown, str(shown[-1].pk) if len(found) > PAGE_SIZE else ""


def _shown_member(row: MemberRow) -> tuple[object, ...]:
    """Whatever of a member can change on the page."""
    user = row.membership.user
    return (
        row.membership.pk,
        row.membership.role,
        row.stays,
        row.is_invited,
        user.email,
        user.is_active,
        user.last_login,
    )


def _shown_key(row: KeyRow) -> tuple[object, ...]:
    key = row.key
    return (key.pk, key.name, key.scopes, key.revoked_at, key.last_used_at, row.is_usable)


# --- acts ---------------------------------------------------------------------------------------


class RoleField(forms.ChoiceField):
    """What somebody may do here."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            choices=list(MEANINGS.items()), widget=forms.RadioSelect, label="Role", **kwargs
        )


class AddForm(OnceForm, PasswordForm):
    """Somebody who is to belong to the organization."""

    email = forms.EmailField(
        label="Email address",
        max_length=254,
        widget=forms.EmailInput(attrs={"autocomplete": "off", "autofocus": True}),
    )
    role = RoleField(initial=roles.OPERATOR)


class RoleForm(PasswordForm):
    """What a member may do from now on."""

    role = RoleField()


@permitted("members:write")
@confirmed_by_post
def add(request: ConsoleRequest) -> HttpResponse:
    """Who and as what; then, by POST with the owner's password, he is a member and told how to get in."""
    form = AddForm(request.actor.user, posted(request))
    if not form.is_valid():
        return _ask_whom(request, form)
    if form.taken():
        return redirect("members")
    try:
        wanted = form.cleaned_data
        invited = service.add(request.actor, wanted["email"], wanted["role"])
    except service.AlreadyMember:
        once.give_back(form.cleaned_data["token"])
        form.add_error("email", "This person is a member already.")
        return _ask_whom(request, form)
    return _invited(request, invited, f"{invited.membership.user.email} is a member.")


def _ask_whom(request: ConsoleRequest, form: AddForm) -> HttpResponse:
    context = {"form": form, "title": "Add a member"}
    return page_or_sheet(request, "members/_add.html", context, status_of(form))


@permitted("members:write")
@confirmed_by_post
def invite_again(request: ConsoleRequest, pk: int) -> HttpResponse:
    """What another link is for; then, by POST, somebody is told once more how to get in."""
    membership, form = _find(request.actor, pk), OnceForm(posted(request))
    if not form.is_valid():
        title = f"Invite {membership.user.email} again"
        return _ask(request, "invite", membership, form, title)
    if form.taken():
        return redirect("members")
    invited = service.invite_again(request.actor, pk)
    return _invited(request, invited, f"{membership.user.email} is invited again.")


def _invited(request: ConsoleRequest, invited: Invited, message: str) -> HttpResponse:
    """Where a mail takes the way in to the member, that is said; elsewhere the owner sees it, once."""
    user = invited.membership.user
    if not invited.hand_over:
        messages.success(request, f"{message} {_how(user)}")
        return redirect("members")
    context = {"member": user, "way_in": accounts.way_in(user), "message": message}
    return render(request, "members/invited.html", context, status=201)


def _how(user: User) -> str:
    """How somebody to whom nothing is handed over gets in."""
    if settings.MAIL_SERVER.host:
        return "A mail with the way in is sent."
    if user.has_usable_password():
        return "The password is the one that the account has."
    return (
        "The account is not this organization's alone: whoever runs the console gives a password."
    )


@permitted("members:write")
@confirmed_by_post
def change_role(request: ConsoleRequest, pk: int) -> HttpResponse:
    """What each role may do; then, by POST with the owner's password, the member has another."""
    membership = _find(request.actor, pk)
    form = RoleForm(request.actor.user, posted(request), initial={"role": membership.role})
    title = f"Role of {membership.user.email}"
    if not form.is_valid():
        return _ask(request, "role", membership, form, title)
    try:
        changed = service.change_role(request.actor, pk, form.cleaned_data["role"])
    except service.LastOwner:
        return _last_owner(request, membership)
    if changed.role == membership.role:
        return done(request, reverse("members"), "Nothing was changed.")
    message = f"{membership.user.email} is {_article(changed.role)} now."
    return _done(request, membership, message)


@permitted("members:write")
@confirmed_by_post
def remove(request: ConsoleRequest, pk: int) -> HttpResponse:
    """What ends with it; then, by POST, the member is out and his keys are revoked."""
    membership, form = _find(request.actor, pk), ConsoleForm(posted(request))
    title = f"Remove {membership.user.email}"
    if service.is_last_owner(membership):
        return _last_owner(request, membership)
    if not form.is_valid():
        ending = service.keys_of(membership)
        return _ask(request, "remove", membership, form, title, ending=ending)
    try:
        service.remove(request.actor, pk)
    except service.LastOwner:
        return _last_owner(request, membership)
    return _done(request, membership, f"{membership.user.email} is not a member any more.")


def _find(actor: Actor, pk: int) -> Membership:
    members = Membership.objects.select_related("user")
    membership = members.filter(pk=pk, organization=actor.organization).first()
    if membership is None:
        raise Http404
    return membership


def _ask(
    request: ConsoleRequest,
    act: str,
    membership: Membership,
    form: forms.Form,
    title: str,
    **more: Any,
) -> HttpResponse:
    context = {
        "membership": membership,
        "member": membership.user,
        "is_self": membership.user_id == request.actor.user.pk,
        "form": form,
        "title": title,
        **more,
    }
    return page_or_sheet(request, f"members/_{act}.html", context, status_of(form))


def _last_owner(request: ConsoleRequest, membership: Membership) -> HttpResponse:
    """Nothing was done, and what to do first."""
    context = {"member": membership.user, "title": membership.user.email}
    return page_or_sheet(request, "members/_last_owner.html", context, 409)


def _done(request: ConsoleRequest, membership: Membership, message: str) -> HttpResponse:
    """Who changed himself may not see this page any more: he starts anew."""
    if membership.user_id != request.actor.user.pk:
        return done(request, reverse("members"), message)
    home = reverse("home")
    return HttpResponseClientRedirect(home) if request.htmx else redirect(home)


def _article(role: str) -> str:
    return f"an {role}" if role[0] in "aeiou" else f"a {role}"
