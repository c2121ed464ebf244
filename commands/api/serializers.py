"""Commands, datasets and experiments as the API takes and shows them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from commands import queries
from commands.models import Command, CommandEvent, Dataset, Experiment
from commands.rules.reports import Outcome
from commands.rules.states import (
    ACK_TIMEOUT_DEFAULT_S,
    ACK_TIMEOUT_MAX_S,
    ACK_TIMEOUT_MIN_S,
    State,
)
from organizations import exact_json
from organizations.api.fields import (
    Choice,
    IdFilter,
    Instant,
    Integer,
    JsonObject,
    Text,
    TextOrNull,
)
from organizations.api.inputs import Input
from organizations.api.paging import PageQuery

STATES = [state.value for state in State]
# --- taken --------------------------------------------------------------------------------------


class IssueInput(Input):
    """A command to put on record."""

    datasetId = Text(source="dataset_id")
    clientToken = Text(
        source="client_token",
        max_length=200,
        help_text="Your own name for it: the same token is the same command.",
    )
    name = Text(max_length=200)
    parameters = JsonObject()


class DispatchInput(Input):
    """A command to send."""

    commandId = Text(source="command_id")
    ackTimeoutSeconds = Integer(
        source="ack_timeout_s",
        default=ACK_TIMEOUT_DEFAULT_S,
        min_value=ACK_TIMEOUT_MIN_S,
        max_value=ACK_TIMEOUT_MAX_S,
        help_text="How long after the dispatch a report counts.",
    )


class AckInput(Input):
    """What the vehicle did."""

    commandId = Text(source="command_id")
    outcome = Choice(choices=[outcome.value for outcome in Outcome])
    detail = Text(max_length=2000, allow_blank=True, default="")


class RetractInput(Input):
    """A command to withdraw."""

    commandId = Text(source="command_id")
    reason = Text(max_length=500, allow_blank=True, default="")


class NewExperimentInput(Input):
    """An experiment to create."""

    name = Text(max_length=200)


class NewDatasetInput(Input):
    """A dataset to create."""

    experimentId = Text(source="experiment_id")
    name = Text(max_length=200)
    endpointId = Text(
        source="endpoint_id",
        allow_null=True,
        default=None,
        help_text="Where its commands go; else the organization's default endpoint.",
    )


class KeyStart(serializers.RegexField):
    """What tells an API key from others; never the key itself, which no address may hold."""

    default_error_messages = {
        "invalid": "Must be the start of a key: cck_ and eight characters, without the secret after it."
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(r"^cck_[0-9a-f]{8}\Z", **{"trim_whitespace": False, **options})


class CommandQuery(PageQuery):
    """Which commands. ``since`` is inclusive and ``until`` exclusive, by the time of issue."""

    experimentId = IdFilter(source="experiment_id", required=False)
    datasetId = IdFilter(source="dataset_id", required=False)
    endpointId = IdFilter(
        source="endpoint_id", required=False, help_text="Where they were dispatched to."
    )
    issuedBy = Text(
        source="issued_by",
        required=False,
        help_text="The email address of who issued them, in person or with a key.",
    )
    apiKey = KeyStart(
        source="api_key",
        required=False,
        help_text="The start of the API key that they were issued with, such as `cck_0a1b2c3d`.",
    )
    clientTokenPrefix = Text(
        source="token_prefix", required=False, help_text="How their client tokens begin."
    )
    state = Choice(choices=STATES, required=False)
    since = Instant(required=False)
    until = Instant(required=False)


class DatasetQuery(PageQuery):
    """Which datasets."""

    experimentId = IdFilter(source="experiment_id", required=False)


# --- shown --------------------------------------------------------------------------------------


class StoredJsonObject(JsonObject):
    """A JSON object that is kept as canonical text. A list of large ones is not parsed to be written."""

    def to_representation(self, value: Any) -> Any:
        return exact_json.verbatim(value)


class CommandSerializer(serializers.Serializer[Command]):
    """A command."""

    id = serializers.CharField()
    clientToken = serializers.CharField(source="client_token")
    experimentId = serializers.CharField(source="dataset.experiment_id")
    datasetId = serializers.CharField(source="dataset_id")
    name = serializers.CharField()
    parameters = StoredJsonObject()
    state = serializers.ChoiceField(choices=STATES)
    issuedBy = serializers.CharField(source="issued_by.email")
    issuedAt = Instant(source="issued_at")
    dispatchedAt = Instant(source="dispatched_at", allow_null=True)
    deliveredAt = Instant(source="delivered_at", allow_null=True)
    ackDeadline = Instant(source="ack_deadline", allow_null=True)
    settledAt = Instant(source="settled_at", allow_null=True)
    failureReason = TextOrNull(source="failure_reason")
    retractedBy = serializers.CharField(source="retracted_by.email", allow_null=True)
    retractedAt = Instant(source="retracted_at", allow_null=True)
    retractionReason = TextOrNull(source="retraction_reason")
    reissueOf = serializers.CharField(source="reissue_of_id", allow_null=True)
    attempts = serializers.SerializerMethodField(help_text="How many were begun.")
    nextAttemptAt = Instant(source="delivery.next_attempt_at", allow_null=True)

    def get_attempts(self, command: Command) -> int:
        return command.delivery.attempts if command.delivery else 0


class TimelineSerializer(serializers.Serializer[CommandEvent]):
    """One line of a command's timeline, oldest first."""

    id = serializers.CharField()
    at = Instant()
    kind = serializers.ChoiceField(choices=CommandEvent.Kind.values)
    fromState = TextOrNull(source="from_state")
    toState = TextOrNull(source="to_state")
    reason = TextOrNull()
    outcome = TextOrNull()
    detail = TextOrNull()
    by = serializers.CharField(source="user.email", allow_null=True)
    via = serializers.CharField()


class DiagnosisSerializer(serializers.Serializer[Any]):
    """What happened to a command, and what to do next."""

    code = serializers.CharField()
    summary = serializers.CharField()
    nextStep = serializers.CharField(source="next_step")


class CommandDetailSerializer(CommandSerializer):
    """A command with its timeline and its diagnosis."""

    timeline = TimelineSerializer(many=True)
    diagnosis = serializers.SerializerMethodField()

    @extend_schema_field(DiagnosisSerializer)
    def get_diagnosis(self, command: Command) -> Any:
        diagnosis = queries.diagnose(command, queries.attempts_of(command))
        return DiagnosisSerializer(diagnosis).data


class RetractedCommandSerializer(CommandSerializer):
    """A retracted command. Wants ``on_the_wire`` in its context."""

    attemptOnTheWire = serializers.SerializerMethodField(
        help_text="An attempt was under way, which nothing recalls."
    )

    def get_attemptOnTheWire(self, command: Command) -> bool:
        return bool(self.context["on_the_wire"])


class ExperimentSerializer(serializers.Serializer[Experiment]):
    """An experiment."""

    id = serializers.CharField()
    name = serializers.CharField()
    createdAt = Instant(source="created_at")


class DatasetSerializer(serializers.Serializer[Dataset]):
    """A dataset. Nothing is dispatched from one that is not armed."""

    id = serializers.CharField()
    experimentId = serializers.CharField(source="experiment_id")
    name = serializers.CharField()
    armed = serializers.BooleanField()
    armedBy = serializers.CharField(source="armed_by.email", allow_null=True)
    armedAt = Instant(source="armed_at", allow_null=True)
    endpointId = serializers.CharField(source="endpoint_id", allow_null=True)
    createdAt = Instant(source="created_at")
