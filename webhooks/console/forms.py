"""What an owner fills in about endpoints."""

from __future__ import annotations

from django import forms

from organizations.console.fields import ConsoleForm, OnceForm
from webhooks.console.rows import schedule_in_words
from webhooks.policies import POLICIES
from webhooks.rules.policies import COMMAND


class EndpointForm(OnceForm):
    """A new endpoint."""

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


class DisableForm(ConsoleForm):
    """Why an endpoint is disabled."""

    reason = forms.CharField(
        required=False,
        max_length=200,
        help_text="Shown to everybody who asks why nothing is sent.",
    )
