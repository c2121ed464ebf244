"""What an owner fills in about endpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms

from organizations.console.fields import ConsoleForm, OnceForm, PasswordForm
from webhooks import endpoints as service
from webhooks.console import header_lines
from webhooks.console.header_lines import HeadersField
from webhooks.console.rows import schedule_in_words
from webhooks.console.subscriptions import SubscriptionsField
from webhooks.models import Endpoint
from webhooks.policies import POLICIES
from webhooks.rules.policies import COMMAND


class EndpointFields(ConsoleForm):
    """What a new endpoint and an edited one have in common."""

    name = forms.CharField(max_length=200, help_text="What people here call it.")
    url = forms.CharField(
        label="URL",
        max_length=2048,
        help_text="Each webhook is a POST to exactly this address; redirects are not followed.",
        widget=forms.URLInput(attrs={"placeholder": "https://", "autocomplete": "off"}),
    )
    policy = forms.ChoiceField(
        initial=COMMAND.name,
        choices=[(p.name, f"{p.name}: {schedule_in_words(p)}") for p in POLICIES.values()],
        widget=forms.RadioSelect,
    )
    receives_commands = forms.BooleanField(
        required=False, initial=True, help_text="Commands of your datasets may be sent to it."
    )
    description = forms.CharField(
        required=False,
        max_length=2000,
        help_text="For people here, such as whose receiver it is.",
        widget=forms.Textarea(attrs={"rows": 2}),
    )
    event_types = SubscriptionsField(label="Subscriptions", required=False)
    headers = HeadersField()

    # Names of headers whose values are stored already.
    stored: Sequence[str] = ()

    def clean_headers(self) -> dict[str, str]:
        return header_lines.parsed(self.cleaned_data["headers"], self.stored)

    def refuse(self, field: str, reason: str) -> None:
        """Show what the service said beside the field it said it of."""
        self.add_error(field if field in self.fields else None, reason)


class EndpointForm(EndpointFields, OnceForm):
    """A new endpoint."""


class EditForm(EndpointFields):
    """An endpoint edited. What its owner did not touch stays as it is by then, whoever touched it: the
    form carries the values that it was made with.
    """

    is_default = forms.BooleanField(
        label="Default",
        required=False,
        help_text="It takes the commands of datasets that name no endpoint; the default so far steps"
        " back.",
    )

    field_order = ("name", "url", "policy", "receives_commands", "is_default")

    def __init__(self, endpoint: Endpoint, data: Any = None) -> None:
        initial = {name: getattr(endpoint, name, None) for name in self.base_fields}
        initial["headers"] = header_lines.masked(endpoint.header_names)
        super().__init__(data, initial=initial)
        self.stored = endpoint.header_names
        if self.stored:
            self.fields["headers"].help_text = header_lines.HELP_STORED
        for field in self.fields.values():
            field.show_hidden_initial = True

    def changes(self) -> dict[str, Any]:
        changes = {name: self.cleaned_data[name] for name in self.changed_data}
        if "headers" in changes:
            was = self.data.get(self.add_initial_prefix("headers"), "")
            changes["headers"] = header_lines.changes(was, changes["headers"])
        return changes


class RotateForm(OnceForm):
    """How long the old secret goes on signing beside the new one."""

    overlap_hours = forms.IntegerField(
        label="Overlap in hours",
        initial=service.OVERLAP_HOURS,
        min_value=1,
        max_value=service.MAX_OVERLAP_HOURS,
        help_text="For so long the old secret signs too, and the receiver may be given the new one.",
    )
    emergency = forms.BooleanField(
        label="It leaked: drop every old secret at once",
        required=False,
        help_text="There is no overlap then. The next step asks again.",
    )
    confirmed = forms.BooleanField(required=False, widget=forms.HiddenInput)

    @property
    def must_be_confirmed(self) -> bool:
        return self.cleaned_data["emergency"] and not self.cleaned_data["confirmed"]

    @property
    def hours(self) -> int:
        hours: int = self.cleaned_data["overlap_hours"]
        return 0 if self.cleaned_data["emergency"] else hours


class DisableForm(ConsoleForm):
    """Why an endpoint is disabled."""

    reason = forms.CharField(
        required=False,
        max_length=200,
        help_text="Shown to everybody who asks why nothing is sent.",
    )


class EnableForm(PasswordForm):
    """Who enables an endpoint shows that it is really them."""

    asked_since = "webhooks, commands among them, go out to it from then on"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.begin_at("password")
