"""The Audit page: who did what, when and from where, and what it changed. Owners read, nobody edits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django import forms
from django.apps import apps
from django.http import HttpResponse, QueryDict
from django.urls import reverse
from django.views.decorators.http import require_safe

from organizations import trail
from organizations.console import addresses
from organizations.console.access import ConsoleRequest, permitted
from organizations.console.fields import PeriodForm
from organizations.console.looks import Look
from organizations.console.responses import live, revision_of, unchanged
from organizations.console.selects import Option, Select
from organizations.models import ApiKey, AuditEntry, Organization, User
from organizations.rules import acts, differences
from organizations.rules.differences import Change
from organizations.trail import Filters

# Fields of one entry that the list shows at once; the others are behind a disclosure.
CHANGES_SHOWN: Final = 3
# Keys that the filter offers, the newest.
KEYS_OFFERED: Final = 200

TABS: Final = {
    "commands": Look("Commands", "quiet", "commands"),
    "datasets": Look("Datasets", "quiet", "dataset"),
    "endpoints": Look("Endpoints", "quiet", "endpoint"),
    "events": Look("Events", "quiet", "event"),
    "people": Look("People and keys", "quiet", "members"),
}


@dataclass(frozen=True)
class Kind:
    """What acts are done to: where its name is kept, and which page shows it."""

    model: str
    name: str
    page: str
    # The parameter of the page's address that takes the id; without one the id is part of its path.
    parameter: str | None = None
    # What its row's id begins with, on a page that lists them all.
    row: str | None = None

    def address(self, target_id: str) -> str:
        if self.row is not None:
            return f"{reverse(self.page)}#{self.row}{target_id}"
        if self.parameter:
            return f"{reverse(self.page)}?{self.parameter}={target_id}"
        return reverse(self.page, args=[target_id])

    def names(self, organization: Organization, ids: Iterable[str]) -> dict[str, str]:
        """The names of those that exist, of this organization, by id."""
        model = apps.get_model(self.model)
        rows = model._default_manager.filter(pk__in=set(ids))
        if "organization" in {field.name for field in model._meta.fields}:
            rows = rows.filter(organization=organization)
        return {str(pk): name for pk, name in rows.values_list("pk", self.name)}


KINDS: Final[Mapping[str, Kind]] = {
    "command": Kind("commands.Command", "name", "command"),
    "dataset": Kind("commands.Dataset", "name", "commands", parameter="dataset"),
    "experiment": Kind("commands.Experiment", "name", "commands", parameter="experiment"),
    "endpoint": Kind("webhooks.Endpoint", "name", "endpoint"),
    "event": Kind("webhooks.Event", "type", "event"),
    "membership": Kind("organizations.Membership", "user__email", "members", row="m-"),
    "user": Kind("organizations.User", "email", "members", row="u-"),
    "apikey": Kind("organizations.ApiKey", "name", "members", row="k-"),
    "organization": Kind("organizations.Organization", "name", "members", row="o-"),
}


@dataclass(frozen=True)
class Row:
    """An entry as the page shows it. Without a ``url`` what it was done to is not there any more."""

    entry: AuditEntry
    target: str
    url: str
    changes: Sequence[Change]

    @property
    def words(self) -> str:
        return acts.words_of(self.entry.act)

    @property
    def door(self) -> str:
        return acts.DOORS.get(self.entry.via, self.entry.via)

    @property
    def shown(self) -> Sequence[Change]:
        return self.changes[:CHANGES_SHOWN]

    @property
    def hidden(self) -> Sequence[Change]:
        return self.changes[CHANGES_SHOWN:]


class FilterForm(PeriodForm):
    """The filters of the trail, as they stand in its address."""

    about = forms.ChoiceField(required=False, choices=[(name, name) for name in TABS])
    who = forms.UUIDField(required=False)
    act = forms.ChoiceField(required=False, choices=list(acts.ACTS.items()))
    target = forms.CharField(required=False, max_length=64)
    # Where a page begins.
    before = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1)

    NARROWING = ("about", "who", "act", "target", "since", "until")

    def __init__(self, organization: Organization, data: QueryDict) -> None:
        super().__init__(data)
        self._organization = organization

    def clean_who(self) -> User | ApiKey | None:
        wanted = self.cleaned_data["who"]
        if wanted is None:
            return None
        key = ApiKey.objects.filter(pk=wanted, organization=self._organization).first()
        if key:
            return key
        acted = AuditEntry.objects.filter(organization=self._organization, user=wanted)
        # An address is nobody's to know here who never had to do with the organization.
        user = User.objects.filter(pk=wanted).first() if acted.exists() else None
        if user is None:
            raise forms.ValidationError("Nobody here has this id.")
        return user

    @property
    def filters(self) -> Filters:
        """The filters that were understood; the others narrow nothing and show their error."""
        understood = self.cleaned_data
        return Filters(
            who=understood.get("who"),
            act=understood.get("act") or "",
            target_types=acts.GROUPS.get(understood.get("about") or "", ()),
            target_id=understood.get("target") or "",
            since=understood.get("since"),
            until=understood.get("until"),
        )

    @property
    def narrows(self) -> bool:
        return any(self.cleaned_data.get(name) for name in self.NARROWING)


@permitted("audit:read")
@require_safe
def audit(request: ConsoleRequest) -> HttpResponse:
    """One page of the trail: whole, its results after a change of filter, or what a poll asks for."""
    organization = request.actor.organization
    form = FilterForm(organization, request.GET)
    form.is_valid()
    before = form.cleaned_data.get("before")
    page = trail.search(organization, form.filters, before)
    # Entries never change: which they are says what the page shows.
    revision = revision_of([entry.pk for entry in page.rows], page.older is None)
    if answer := unchanged(request, revision):
        return answer
    context = {
        "page": page,
        "rows": _rows(organization, page.rows),
        "form": form,
        **addresses.around(request.path, request.GET, page),
        "poll_url": request.get_full_path(),
        "everything_url": addresses.address(request.path, request.GET, target=None, before=None),
    }
    polled = request.htmx.target == "audit-live"
    fragment = "audit/_rows.html" if polled else "audit/_results.html"
    if not request.htmx:
        context |= {"tabs": TABS, "selects": _selects(organization, form)}
    return live(request, "audit/list.html", fragment, context, revision)


def _rows(organization: Organization, entries: Sequence[AuditEntry]) -> list[Row]:
    """Entries with the names of what they are about: one query for each kind of thing."""
    ids: dict[str, set[str]] = {}
    for entry in entries:
        ids.setdefault(entry.target_type, set()).add(entry.target_id)
    names = {
        target_type: KINDS[target_type].names(organization, wanted)
        for target_type, wanted in ids.items()
        if target_type in KINDS
    }
    return [_row(entry, names.get(entry.target_type, {})) for entry in entries]


def _row(entry: AuditEntry, names: Mapping[str, str]) -> Row:
    name = names.get(entry.target_id)
    # What is gone had a name when it was done.
    known = {**entry.before, **entry.after}
    target = name or known.get("name") or known.get("user") or entry.target_id
    url = KINDS[entry.target_type].address(entry.target_id) if name else ""
    changes = differences.changes(entry.before, entry.after)
    return Row(entry, str(target), url, [c for c in changes if not _says(c, str(target))])


def _says(change: Change, target: str) -> bool:
    """Whether it only says once more what the act was done to."""
    return change.field in ("name", "user") and target in (change.old, change.new)


def _selects(organization: Organization, form: FilterForm) -> list[Select]:
    """What the filters offer, and what of it is chosen."""
    who, act = form.cleaned_data.get("who"), form.cleaned_data.get("act")
    everybody = [*_people(organization), *_keys(organization)]
    every_act = [Option(name, words) for name, words in acts.ACTS.items()]
    return [
        Select("who", "Person or key", "Everybody", everybody).choosing(str(who.pk) if who else ""),
        Select("act", "Act", "Every act", every_act).choosing(act or ""),
    ]


def _people(organization: Organization) -> list[Option]:
    return [
        Option(str(person.pk), person.email, "People") for person in trail.who_acted(organization)
    ]


def _keys(organization: Organization) -> list[Option]:
    keys = ApiKey.objects.filter(organization=organization).order_by("-pk")[:KEYS_OFFERED]
    return [Option(str(k.pk), f"{k.name} (cck_{k.prefix}…)", "API keys") for k in keys]
