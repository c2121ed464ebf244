"""The admin of experiments, datasets and commands. Datasets are armed and commands retracted by acts
that ask first; no state is ever edited.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html

from commands import datasets, lifecycle
from commands.models import Command, CommandEvent, Dataset, Experiment
from commands.rules.states import State
from organizations.actors import NotPermitted
from organizations.admin_actions import Question, confirm
from organizations.models import Organization
from organizations.tenant_admin import (
    ON_A_PAGE,
    OrganizationFilter,
    TenantAdmin,
    acting_in,
    capped,
    person,
)

# --- experiments and datasets -------------------------------------------------------------------


@admin.register(Experiment)
class ExperimentAdmin(TenantAdmin[Experiment]):
    """Campaigns, which owners make and rename."""

    view_permission = "datasets:read"
    edit_permission = "datasets:write"
    list_display = ("name", "organization", "created_at")
    list_select_related = ("organization",)
    list_filter = (OrganizationFilter,)
    search_fields = ("name",)
    fields = ("organization", "name", "created_at")
    readonly_fields = ("created_at",)
    readonly_later = ("organization",)


class DatasetForm(forms.ModelForm):  # type: ignore[type-arg]
    """A dataset belongs where its experiment belongs, and so does its endpoint."""

    class Meta:
        model = Dataset
        fields = ("experiment", "name", "endpoint")

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if experiment := cleaned.get("experiment"):
            self.instance.organization = experiment.organization
        endpoint = cleaned.get("endpoint")
        if endpoint and endpoint.organization_id != self.instance.organization_id:
            self.add_error("endpoint", "The endpoint belongs to another organization.")
        elif endpoint and not endpoint.receives_commands:
            self.add_error("endpoint", "The endpoint does not receive commands.")
        return cleaned


ARM = Question[Dataset](
    title="Arm datasets",
    consequences=("Commands of these datasets can be dispatched from now on.",),
    button="Arm",
    describe=lambda dataset: f"{dataset.name}, of {dataset.experiment.name}",
)
DISARM = Question[Dataset](
    title="Disarm datasets",
    consequences=(
        "Dispatches from these datasets are refused from now on.",
        "What was dispatched before goes on. Retract the commands that must not be carried out.",
    ),
    button="Disarm",
    describe=ARM.describe,
)


@admin.register(Dataset)
class DatasetAdmin(TenantAdmin[Dataset]):
    """Datasets, with their arming switch as acts."""

    view_permission = "datasets:read"
    edit_permission = "datasets:write"
    form = DatasetForm
    list_display = ("name", "armed", "armed_by", "experiment", "endpoint", "organization")
    list_select_related = ("experiment", "endpoint", "armed_by", "organization")
    list_filter = (OrganizationFilter, "armed")
    search_fields = ("name",)
    fields = (
        "organization",
        "experiment",
        "name",
        "endpoint",
        "armed",
        "armed_by",
        "armed_at",
        "created_at",
    )
    readonly_fields = ("organization", "armed", "armed_by", "armed_at", "created_at")
    readonly_later = ("experiment",)
    autocomplete_fields = ("experiment", "endpoint")
    actions = ("arm", "disarm")

    def has_arm_permission(self, request: HttpRequest) -> bool:
        return self.may(request, "datasets:arm")

    @admin.action(description="Arm selected datasets", permissions=["arm"])
    def arm(self, request: HttpRequest, queryset: QuerySet[Dataset]) -> HttpResponse | None:
        answer = confirm(self, request, ARM)
        if isinstance(answer, HttpResponse):
            return answer
        for dataset in answer.rows:
            self._switch(request, dataset, on=True)
        return None

    @admin.action(description="Disarm selected datasets", permissions=["arm"])
    def disarm(self, request: HttpRequest, queryset: QuerySet[Dataset]) -> HttpResponse | None:
        answer = confirm(self, request, DISARM)
        if isinstance(answer, HttpResponse):
            return answer
        for dataset in answer.rows:
            self._switch(request, dataset, on=False)
        return None

    def _switch(self, request: HttpRequest, dataset: Dataset, *, on: bool) -> None:
        name = capped(dataset.name)
        act = datasets.arm if on else datasets.disarm
        try:
            act(acting_in(request, dataset.organization), dataset.pk)
        except NotPermitted:
            refusal = f"{name}: your role in its organization does not allow this."
            self.message_user(request, refusal, messages.ERROR)
        else:
            word = "armed" if on else "not armed"
            self.message_user(request, f"{name} is {word}.", messages.SUCCESS)


# --- commands -----------------------------------------------------------------------------------


def _before_retraction(command: Command) -> str:
    """The command, with what a retraction comes too late for."""
    known = f"{command.name}, {command.client_token}: {command.get_state_display()}"
    if command.delivery and command.delivery.lease_until:
        return f"{known}, an attempt is on the wire"
    return known


RETRACT = Question[Command](
    title="Retract commands",
    consequences=(
        "No further attempt starts.",
        "An attempt on the wire cannot be recalled, and neither can a command that was delivered:"
        " the vehicle may carry it out all the same.",
        "A retracted command stays retracted. To send it after all, reissue it.",
    ),
    button="Retract",
    describe=_before_retraction,
    asks_reason=True,
)


# What came of one row, as the sentence that counts such rows.
RETRACTED = "retracted"
ON_THE_WIRE = (
    "retracted with an attempt on the wire, which cannot be recalled: its outcome will be recorded"
)
BEFORE = "retracted before"
NOT_PERMITTED = "not permitted: your role in the organization does not allow it"
SENTENCES = {
    RETRACTED: messages.SUCCESS,
    ON_THE_WIRE: messages.WARNING,
    BEFORE: messages.INFO,
    NOT_PERMITTED: messages.ERROR,
}


@admin.register(Command)
class CommandAdmin(TenantAdmin[Command]):
    """Commands to look at, and to retract."""

    list_display = (
        "shown_name",
        "state",
        "shown_token",
        "dataset",
        "issued_at",
        "ack_deadline",
        "organization",
        "on_console",
    )
    list_select_related = ("organization", "dataset", "delivery")
    list_filter = (OrganizationFilter, "state")
    lookups = ("dataset", "dataset__id__exact")
    searched_ids = ("pk",)
    search_help_text = "A command's id, or the start of its client token."
    fields = (
        "id",
        "organization",
        "dataset",
        "client_token",
        "shown_name",
        "shown_parameters",
        "state",
        "issued_by",
        "issued_at",
        "reissue_of",
        "dispatch_refusal",
        "dispatched_at",
        "ack_deadline",
        "delivery",
        "delivered_at",
        "early_outcome",
        "settled_at",
        "failure_reason",
        "retracted_by",
        "retracted_at",
        "retraction_reason",
        "timeline",
    )
    readonly_fields = fields
    actions = ("retract",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Command]:
        """For a superuser, naming all organizations lets filters use the indexes that begin with one."""
        rows = super().get_queryset(request)
        if person(request).is_superuser:
            return rows.filter(organization__in=Organization.objects.order_by())
        return rows

    def search(self, term: str) -> Q:
        try:
            return Q(pk=UUID(term))
        except ValueError:
            return Q(client_token__startswith=term)

    def view_on_site(self, obj: Command) -> str:
        return f"/commands/{obj.pk}/"

    # -- what it shows --

    @admin.display(description="name")
    def shown_name(self, command: Command) -> str:
        return capped(command.name)

    @admin.display(description="client token")
    def shown_token(self, command: Command) -> str:
        return capped(command.client_token)

    @admin.display(description="parameters")
    def shown_parameters(self, command: Command) -> str:
        return capped(command.parameters, ON_A_PAGE)

    @admin.display(description="timeline")
    def timeline(self, command: Command) -> str:
        address = reverse("admin:commands_commandevent_changelist")
        return format_html('<a href="{}?command={}">Timeline</a>', address, command.pk)

    @admin.display(description="console")
    def on_console(self, command: Command) -> str:
        return format_html('<a href="{}">View on console</a>', self.view_on_site(command))

    # -- retract --

    def has_retract_permission(self, request: HttpRequest) -> bool:
        return self.may(request, "commands:retract")

    @admin.action(description="Retract selected commands", permissions=["retract"])
    def retract(self, request: HttpRequest, queryset: QuerySet[Command]) -> HttpResponse | None:
        answer = confirm(self, request, RETRACT)
        if isinstance(answer, HttpResponse):
            return answer
        outcomes = [self._retract_one(request, row, answer.reason) for row in answer.rows]
        for sentence, level in SENTENCES.items():
            if count := outcomes.count(sentence):
                self.message_user(request, f"{count} {sentence}.", level)
        return None

    def _retract_one(self, request: HttpRequest, command: Command, reason: str) -> str:
        if command.state == State.RETRACTED:
            return BEFORE
        try:
            actor = acting_in(request, command.organization)
            retracted = lifecycle.retract(actor, command.pk, reason)
        except NotPermitted:
            return NOT_PERMITTED
        return ON_THE_WIRE if retracted.attempt_on_the_wire else RETRACTED


@admin.register(CommandEvent)
class CommandEventAdmin(TenantAdmin[CommandEvent]):
    """The lines of all timelines."""

    organization_path = "command__organization"
    list_display = (
        "id",
        "at",
        "kind",
        "command",
        "from_state",
        "to_state",
        "reason",
        "user",
        "via",
    )
    list_select_related = ("command", "user")
    lookups = ("command",)
    searched_ids = ("command_id",)
    search_help_text = "A command's id."
    fields = (
        "command",
        "kind",
        "at",
        "from_state",
        "to_state",
        "reason",
        "outcome",
        "shown_detail",
        "user",
        "api_key",
        "via",
    )
    readonly_fields = fields

    @admin.display(description="detail")
    def shown_detail(self, line: CommandEvent) -> str:
        return capped(line.detail, ON_A_PAGE)
