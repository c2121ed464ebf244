"""What narrows the list of commands: as it stands in the address, as the page offers it, and as what can
be dropped again, one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django import forms
from django.db.models import F
from django.http import QueryDict
from django.urls import reverse

from commands.console.states import CHOICES, REFUSED_ONLY
from commands.models import Dataset, Experiment
from commands.queries import Filters
from organizations.console import addresses, words
from organizations.console.fields import PeriodForm
from organizations.console.selects import Option, Select
from organizations.models import ApiKey, Membership, Organization
from webhooks.console.rows import endpoint_options

# Times that move on by themselves, unlike "since".
WITHIN: Final = {
    "15m": ("The last 15 minutes", timedelta(minutes=15)),
    "1h": ("The last hour", timedelta(hours=1)),
    "24h": ("The last 24 hours", timedelta(hours=24)),
    "7d": ("The last 7 days", timedelta(days=7)),
    "30d": ("The last 30 days", timedelta(days=30)),
}
# An issuer is a person, or one key of a person.
PERSON, KEY = "person", "key"


class IssuerField(forms.CharField):
    """``person-<id>`` or ``key-<id>``."""

    def clean(self, value: Any) -> tuple[str, UUID] | None:
        text = super().clean(value)
        if not text:
            return None
        kind, _, identifier = text.partition("-")
        try:
            issuer = UUID(identifier)
        except ValueError:
            issuer = None
        if issuer is None or kind not in (PERSON, KEY):
            raise forms.ValidationError("Neither a person nor a key.")
        return kind, issuer


class FilterForm(PeriodForm):
    """The filters of the list, as they stand in its address."""

    q = forms.CharField(required=False, max_length=200, label="client token or id")
    state = forms.ChoiceField(required=False, choices=[(state, state) for state in CHOICES])
    experiment = forms.UUIDField(required=False)
    dataset = forms.UUIDField(required=False)
    issuer = IssuerField(required=False)
    endpoint = forms.UUIDField(required=False)
    within = forms.ChoiceField(required=False, choices=[(name, name) for name in WITHIN])
    # Where a page begins, and the newest command when the page was opened.
    before = forms.UUIDField(required=False)
    seen = forms.UUIDField(required=False)

    NARROWING = (
        "state",
        "q",
        "dataset",
        "within",
        "experiment",
        "issuer",
        "endpoint",
        "since",
        "until",
    )
    # Those behind "More filters", which somebody would look for in vain.
    TUCKED_AWAY = ("experiment", "issuer", "endpoint", "since", "until")

    def filters(self, now: datetime) -> Filters:
        """The filters that were understood; the others narrow nothing and show their error."""
        understood = self.cleaned_data
        kind, issuer = understood.get("issuer") or ("", None)
        refused = understood.get("state") == REFUSED_ONLY
        return Filters(
            experiment_id=understood.get("experiment"),
            dataset_id=understood.get("dataset"),
            endpoint_id=understood.get("endpoint"),
            issued_by_id=issuer if kind == PERSON else None,
            api_key_id=issuer if kind == KEY else None,
            state=None if refused else understood.get("state") or None,
            refused=refused,
            since=self._since(now),
            until=understood.get("until"),
            search=understood.get("q") or None,
        )

    def _since(self, now: datetime) -> datetime | None:
        since: datetime | None = self.cleaned_data.get("since")
        if within := self.cleaned_data.get("within"):
            start = now - WITHIN[within][1]
            return max(since, start) if since else start
        return since

    @property
    def narrowing(self) -> list[str]:
        """The names of the filters that narrow."""
        return [name for name in self.NARROWING if self.cleaned_data.get(name)]


def selects(organization: Organization, form: FilterForm) -> dict[str, Select]:
    """What the filters of the organization offer, and what of it is chosen."""
    offered = (
        Select("dataset", "Dataset", "Every dataset", _datasets(organization)),
        Select(
            "within", "Issued", "Any time", [Option(k, label) for k, (label, _) in WITHIN.items()]
        ),
        Select("experiment", "Experiment", "Every experiment", _experiments(organization)),
        Select("issuer", "Issuer", "Anybody", [*_people(organization), *_keys(organization)]),
        Select("endpoint", "Endpoint", "Every endpoint", endpoint_options(organization)),
    )
    chosen = {name: form.data[name].strip().lower() for name in form.narrowing}
    return {select.name: select.choosing(chosen.get(select.name, "")) for select in offered}


def _experiments(organization: Organization) -> list[Option]:
    experiments = Experiment.objects.filter(organization=organization).order_by("name", "pk")
    return [Option(str(e.pk), e.name) for e in experiments]


def _datasets(organization: Organization) -> list[Option]:
    datasets = Dataset.objects.filter(organization=organization).select_related("experiment")
    in_groups = datasets.order_by("experiment__name", "experiment_id", "name", "pk")
    return [Option(str(d.pk), d.name, d.experiment.name) for d in in_groups]


def _people(organization: Organization) -> list[Option]:
    members = Membership.objects.filter(organization=organization).select_related("user")
    group = "People, in person or with a key"
    return [
        Option(f"{PERSON}-{m.user_id}", m.user.email, group)
        for m in members.order_by("user__email")
    ]


def _keys(organization: Organization) -> list[Option]:
    keys = ApiKey.objects.filter(organization=organization)
    return [
        Option(
            f"{KEY}-{k.pk}",
            f"{k.name} · cck_{k.prefix}",
            "Revoked keys" if k.revoked_at else "Keys",
        )
        for k in keys.order_by(F("revoked_at").asc(nulls_first=True), "name", "pk")
    ]


@dataclass(frozen=True)
class Drop:
    """A filter that is in force, in words, and the list without it."""

    name: str
    words: str
    url: str
    tucked_away: bool


def drops(form: FilterForm, query: QueryDict, offered: dict[str, Select]) -> list[Drop]:
    """The filters that are in force."""

    def drop(name: str) -> Drop:
        without: dict[str, Any] = {name: None, "before": None}
        said = _words(name, form.cleaned_data[name], offered)
        return Drop(name, said, address(query, **without), name in form.TUCKED_AWAY)

    return [drop(name) for name in form.narrowing]


def _words(name: str, value: Any, offered: dict[str, Select]) -> str:
    match name:
        case "q":
            return f"Token or id: {value}"
        case "state":
            return CHOICES[value].word
        case "since" | "until":
            return f"{name.capitalize()} {words.absolute(value)}"
        case "within":
            return offered[name].words
        case _:
            return f"{offered[name].label}: {offered[name].words}"


def address(query: QueryDict, page: str = "commands", **changes: Any) -> str:
    """The list, or another page, with these parameters changed, or left out where None."""
    return addresses.address(reverse(page), query, **{"seen": None, **changes})
