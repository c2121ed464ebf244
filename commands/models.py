"""What: experiments, datasets with their arming switch, commands and the timeline of each."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from commands.rules.reports import Outcome
from commands.rules.states import TRANSITIONS, State
from organizations import exact_json, guards
from organizations.ids import new_id
from organizations.models import ApiKey, Organization, User
from webhooks.models import Delivery, Endpoint


class Experiment(models.Model):
    """A campaign that groups datasets."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="experiments"
    )
    name = models.CharField(max_length=200)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    def __str__(self) -> str:
        return self.name


class Dataset(models.Model):
    """A set of commands that is armed or not: nothing is dispatched from an unarmed one."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="datasets"
    )
    experiment = models.ForeignKey(Experiment, on_delete=models.PROTECT, related_name="datasets")
    name = models.CharField(max_length=200)
    endpoint = models.ForeignKey(
        Endpoint,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="datasets",
        help_text="Where its commands go; empty means the organization's default endpoint.",
    )
    armed = models.BooleanField(default=False)
    armed_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    armed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=Q(armed=False) | Q(armed_at__isnull=False),
                name="armed_dataset_says_since_when",
            )
        ]
        triggers = [guards.frozen("id", "organization", "experiment", "created_at")]

    def __str__(self) -> str:
        return self.name


class Command(models.Model):
    """An order to a vehicle, from intent to what the integrator says became of it.

    Only ``commands.lifecycle`` changes a state, and the database refuses every move that is not one
    of the transitions, whoever asks.
    """

    STATE_CHOICES = [(state, state.replace("_", " ")) for state in State]

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="commands", db_index=False
    )
    dataset = models.ForeignKey(
        Dataset, on_delete=models.PROTECT, related_name="commands", db_index=False
    )
    client_token = models.CharField(
        max_length=200,
        help_text="The issuer's own name for it; the same token is the same command.",
    )
    name = models.CharField(max_length=200)
    parameters = models.TextField(help_text="Canonical JSON text.")
    state = models.CharField(max_length=16, choices=STATE_CHOICES, default=State.LOGGED)
    # A command changes its state a few times, and each change writes every index: only what a page
    # or the engine looks up has one.
    issued_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+", db_index=False)
    issued_at = models.DateTimeField(db_default=Now(), editable=False)
    reissue_of = models.ForeignKey(
        "self",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="reissues",
        db_index=False,
    )
    # Why the last dispatch was refused, while it is still logged.
    dispatch_refusal = models.CharField(max_length=32, blank=True)
    dispatched_at = models.DateTimeField(null=True)
    ack_deadline = models.DateTimeField(null=True)
    # The frozen body is the event of this delivery.
    delivery = models.OneToOneField(
        Delivery, on_delete=models.PROTECT, null=True, related_name="command"
    )
    delivered_at = models.DateTimeField(null=True)
    # A report that came before our 2xx did: applied together with the delivery.
    early_outcome = models.CharField(
        max_length=16, blank=True, choices=[(outcome, outcome) for outcome in Outcome]
    )
    settled_at = models.DateTimeField(null=True)
    failure_reason = models.CharField(max_length=32, blank=True)
    retracted_by = models.ForeignKey(
        User,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
    )
    retracted_at = models.DateTimeField(null=True)
    retraction_reason = models.CharField(max_length=500, blank=True)

    class Meta:
        constraints = [
            # Its operator class also finds a token by its start, whatever the database's locale.
            models.UniqueConstraint(
                fields=["organization", "client_token"],
                opclasses=["uuid_ops", "varchar_pattern_ops"],
                name="one_command_a_client_token",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[state.value for state in State]),
                name="command_state_known",
            ),
            models.CheckConstraint(
                condition=Q(state__in=[State.LOGGED.value, State.RETRACTED.value])
                | Q(
                    dispatched_at__isnull=False,
                    ack_deadline__isnull=False,
                    delivery__isnull=False,
                ),
                name="dispatched_command_has_its_deadline",
            ),
        ]
        indexes = [
            # The list: an organization's commands, newest first (ids sort by time).
            models.Index(fields=["organization", "-id"], name="command_newest"),
            # The list filtered by state, and the counts of what needs a person.
            models.Index(fields=["organization", "state", "-id"], name="command_by_state"),
            # The list filtered by dataset or experiment.
            models.Index(fields=["dataset", "-id"], name="command_by_dataset"),
            # The overview, and the list of those whose dispatch was refused, among however many that wait
            # for one. A command that was never refused never has an entry.
            models.Index(
                fields=["organization", "-id"],
                condition=Q(state="logged") & ~Q(dispatch_refusal=""),
                name="command_refused",
            ),
            # A command's page: what was it reissued as?
            models.Index(
                fields=["reissue_of"],
                condition=Q(reissue_of__isnull=False),
                name="command_reissues",
            ),
            # The sweep: delivered commands whose deadline passed.
            models.Index(
                fields=["ack_deadline"],
                condition=Q(state="delivered"),
                name="command_awaiting_ack",
            ),
        ]
        triggers = [
            guards.starts_as("state", State.LOGGED),
            guards.transitions("state", TRANSITIONS),
            guards.frozen(
                "id",
                "organization",
                "dataset",
                "client_token",
                "name",
                "parameters",
                "issued_by",
                "issued_at",
                "reissue_of",
            ),
            guards.frozen_once_set(
                "dispatched_at",
                "ack_deadline",
                "delivery",
                "delivered_at",
                "settled_at",
                "retracted_by",
                "retracted_at",
            ),
            *guards.never_deleted(),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.client_token}"

    @property
    def experiment_id(self) -> UUID:
        """The dataset's."""
        return self.dataset.experiment_id

    @property
    def parameters_value(self) -> Any:
        """The parameters as a JSON value, numbers exact."""
        return exact_json.loads(self.parameters)


class CommandEvent(models.Model):
    """One line of a command's timeline. A transition is such a line, with its reason."""

    class Kind(models.TextChoices):
        ISSUED = "issued"
        DISPATCH_REFUSED = "dispatch_refused"
        DISPATCHED = "dispatched"
        DELIVERED = "delivered"
        FAILED = "failed"
        REPORT_EARLY = "report_early"
        REPORT_REFUSED = "report_refused"
        ACKED = "acked"
        NACKED = "nacked"
        TIMED_OUT = "timed_out"
        RETRACTED = "retracted"
        REISSUED = "reissued"

    command = models.ForeignKey(
        Command, on_delete=models.PROTECT, related_name="timeline", db_index=False
    )
    kind = models.CharField(max_length=32, choices=Kind)
    at = models.DateTimeField(db_default=Now())
    from_state = models.CharField(max_length=16, blank=True)
    to_state = models.CharField(max_length=16, blank=True)
    reason = models.CharField(max_length=64, blank=True, help_text="A code: why it happened.")
    outcome = models.CharField(max_length=16, blank=True, help_text="What a report said.")
    detail = models.CharField(max_length=2000, blank=True, help_text="In somebody's words.")
    user = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    api_key = models.ForeignKey(
        ApiKey, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    via = models.CharField(max_length=16)

    class Meta:
        indexes = [
            models.Index(fields=["command", "id"], name="timeline_of_command"),
            # The list filtered by who issued, in person or with a key. A line is written once, while an
            # index on the command would be written at each change of its state.
            models.Index(
                fields=["user", "-command"],
                condition=Q(kind="issued"),
                name="timeline_issued_by",
            ),
            models.Index(
                fields=["api_key", "-command"],
                condition=Q(kind="issued", api_key__isnull=False),
                name="timeline_issued_with",
            ),
        ]
        triggers = guards.append_only()

    def __str__(self) -> str:
        return f"{self.kind} {self.command_id}"
