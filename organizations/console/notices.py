"""The Notices page: what was sent, to whom, and what waits; and what somebody wants to be told."""

from __future__ import annotations

from dataclasses import dataclass

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from organizations.actors import Actor
from organizations.console import addresses
from organizations.console.access import ConsoleRequest, permitted
from organizations.console.fields import ConsoleForm
from organizations.console.responses import live, revision_of, unchanged
from organizations.models import Notice
from organizations.notices import preferences, reading
from organizations.notices.mails import page_of
from organizations.paging import Listing
from organizations.rules.letters import WORDS, Item, item_of
from organizations.rules.notices import MUTABLE, Kind


@dataclass(frozen=True)
class Row:
    """A notice as the page shows it."""

    notice: Notice
    item: Item

    @property
    def what(self) -> str:
        return WORDS[Kind(self.notice.kind)].one

    @property
    def url(self) -> str:
        return page_of(Kind(self.notice.kind), self.notice.subject_id)


class PreferencesForm(ConsoleForm):
    """What somebody is told by mail."""

    command_timed_out = forms.BooleanField(
        required=False,
        label="A command of mine timed out",
        help_text="Delivered, and nobody knows what the vehicle did.",
    )
    command_failed = forms.BooleanField(required=False, label="A command of mine failed")
    command_nacked = forms.BooleanField(required=False, label="A command of mine was rejected")

    @classmethod
    def of(cls, actor: Actor) -> PreferencesForm:
        muted = preferences.muted_by(actor)
        return cls(initial={kind.value: kind not in muted for kind in MUTABLE})

    def muted(self) -> list[Kind]:
        return [kind for kind in MUTABLE if not self.cleaned_data[kind.value]]


@permitted("commands:read")
@require_safe
def notices(request: ConsoleRequest) -> HttpResponse:
    """What was sent and what waits, newest first."""
    before = addresses.number(request.GET.get("before", ""))
    page = Listing(reading.visible_to(request.actor), "pk", "happened_at").page(before)
    revision = revision_of([_shown(notice) for notice in page.rows], page.older)
    if answer := unchanged(request, revision):
        return answer
    context = {
        "page": page,
        "rows": [Row(n, item_of(Kind(n.kind), n.subject_id, n.facts)) for n in page.rows],
        **addresses.around(request.path, request.GET, page),
        "sees_all": reading.sees_all(request.actor),
        "form": None if request.htmx else PreferencesForm.of(request.actor),
    }
    return live(request, "notices/list.html", "notices/_list.html", context, revision)


def _shown(notice: Notice) -> tuple[object, ...]:
    """Whatever of a notice can change on a page."""
    return (notice.pk, notice.state, notice.tries, notice.next_try_at, notice.lease_until)


@permitted("commands:read")
@require_POST
def choose_notices(request: ConsoleRequest) -> HttpResponse:
    """Switch mails on and off, for oneself."""
    form = PreferencesForm(request.POST)
    if form.is_valid():
        preferences.mute(request.actor, form.muted())
        messages.success(request, "Your choice of mails is stored.")
    return redirect("notices")
