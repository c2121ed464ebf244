"""What people fill in to issue, dispatch and withdraw commands."""

from __future__ import annotations

import secrets
from typing import Any

from django import forms

from commands.models import Dataset, Experiment
from commands.rules.states import (
    ACK_TIMEOUT_DEFAULT_S,
    ACK_TIMEOUT_MAX_S,
    ACK_TIMEOUT_MIN_S,
)
from organizations import exact_json
from organizations.console.fields import ConsoleForm, OnceForm
from organizations.models import Organization
from webhooks.models import Endpoint


def new_client_token() -> str:
    """A token that no other command has."""
    return f"console-{secrets.token_hex(8)}"


def client_token_field() -> forms.CharField:
    return forms.CharField(
        label="Client token",
        max_length=200,
        help_text="Your own name for this command. The same token twice is the same command.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )


class DatasetField(forms.ModelChoiceField):  # type: ignore[type-arg]
    """A dataset, under its experiment's name."""

    def label_from_instance(self, dataset: Dataset) -> str:
        armed = "" if dataset.armed else " (not armed)"
        return f"{dataset.experiment.name} / {dataset.name}{armed}"


class IssueForm(ConsoleForm):
    """A new command. The same form sent twice issues one: its token is the same."""

    dataset = DatasetField(Dataset.objects.none(), empty_label="Choose a dataset")
    name = forms.CharField(
        max_length=200,
        help_text="What the vehicle is to do, in the receiver's vocabulary.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    client_token = client_token_field()
    parameters = forms.CharField(
        help_text="A JSON object. Each digit is sent as you write it.",
        strip=False,
        widget=forms.Textarea(attrs={"rows": 10, "spellcheck": "false", "autocomplete": "off"}),
    )

    def __init__(self, organization: Organization, *args: Any, **kwargs: Any) -> None:
        defaults = {"client_token": new_client_token(), "parameters": "{}"}
        kwargs["initial"] = {**defaults, **(kwargs.get("initial") or {})}
        super().__init__(*args, **kwargs)
        datasets = Dataset.objects.filter(organization=organization).select_related("experiment")
        field = self.fields["dataset"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = datasets.order_by("experiment__name", "name")

    def clean_parameters(self) -> Any:
        return parameters_of(self.cleaned_data["parameters"])


def parameters_of(text: str) -> dict[str, Any]:
    """The parameters that somebody typed. Raises ValidationError with a sentence."""
    try:
        value = exact_json.loads(text)
        exact_json.dumps(value)
    except exact_json.NotExactJson as error:
        raise forms.ValidationError(str(error)) from None
    if not isinstance(value, dict):
        raise forms.ValidationError("The parameters are a JSON object: { … }.")
    return value


class DispatchForm(OnceForm):
    """How long the integrator has for its report."""

    ack_timeout = forms.IntegerField(
        label="Time to acknowledge, in seconds",
        min_value=ACK_TIMEOUT_MIN_S,
        max_value=ACK_TIMEOUT_MAX_S,
        initial=ACK_TIMEOUT_DEFAULT_S,
        help_text=f"{ACK_TIMEOUT_MIN_S} to {ACK_TIMEOUT_MAX_S}, counted from the dispatch.",
    )


class RetractForm(ConsoleForm):
    """Why a command is withdrawn."""

    reason = forms.CharField(
        required=False,
        max_length=500,
        help_text="Stands on the timeline, for whoever reads it later.",
        widget=forms.Textarea(attrs={"rows": 3}),
    )


class ReissueForm(ConsoleForm):
    """The same order under a new token."""

    client_token = client_token_field()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, initial={"client_token": new_client_token()}, **kwargs)


class ExperimentForm(OnceForm):
    name = forms.CharField(max_length=200)


class DatasetForm(OnceForm):
    experiment = forms.ModelChoiceField(Experiment.objects.none(), empty_label=None)
    name = forms.CharField(max_length=200)
    endpoint = forms.ModelChoiceField(
        Endpoint.objects.none(),
        required=False,
        empty_label="The organization's default",
        help_text="Where its commands go.",
    )

    def __init__(self, organization: Organization, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, found in {
            "experiment": Experiment.objects.filter(organization=organization),
            "endpoint": Endpoint.objects.filter(
                organization=organization, receives_commands=True, archived_at=None
            ),
        }.items():
            field = self.fields[name]
            assert isinstance(field, forms.ModelChoiceField)
            field.queryset = found.order_by("name")
