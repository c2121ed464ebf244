"""Endpoints and attempts as the API takes and shows them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from organizations.api.fields import (
    Boolean,
    Choice,
    ChoiceOrNull,
    IdFilter,
    Instant,
    Integer,
    Text,
    TextOrNull,
)
from organizations.api.inputs import Input
from organizations.api.paging import PageQuery
from organizations.clock import rfc3339
from webhooks import endpoints
from webhooks.models import Attempt, Endpoint
from webhooks.policies import POLICIES
from webhooks.rules.headers import MAX_VALUE_BYTES
from webhooks.rules.policies import EVENT
from webhooks.rules.verdicts import ErrorKind, Phase, Verdict


class HeadersField(serializers.DictField):
    """Headers by name. In a change of an endpoint null removes one, and those not named stay."""

    def __init__(self, *, removable: bool, **options: Any) -> None:
        value = Text(max_length=MAX_VALUE_BYTES, allow_null=removable)
        super().__init__(**{"child": value, "allow_empty": True, **options})


class NewEndpointInput(Input):
    """An endpoint to register."""

    name = Text(max_length=200)
    url = Text(help_text="https, at a public address.")
    policy = Choice(choices=list(POLICIES), default=EVENT.name)
    eventTypes = serializers.ListField(
        source="event_types",
        child=Text(max_length=100),
        max_length=100,
        default=list,
        help_text="Types such as `command.failed`, prefixes such as `command.*`, or `*`.",
    )
    receivesCommands = Boolean(
        source="receives_commands",
        required=False,
        help_text="True for the policy `command` unless said.",
    )
    description = Text(max_length=2000, allow_blank=True, default="")
    headers = HeadersField(
        removable=False,
        required=False,
        help_text="Sent along with each attempt; values are stored encrypted and never shown.",
    )
    maxInFlight = Integer(
        source="max_in_flight", min_value=1, max_value=1000, allow_null=True, required=False
    )


class EndpointChanges(Input):
    """What is to change of an endpoint; what is not named stays."""

    name = Text(max_length=200, required=False)
    url = Text(required=False, help_text="https, at a public address.")
    policy = Choice(
        choices=list(POLICIES), required=False, help_text="Deliveries that exist keep theirs."
    )
    eventTypes = serializers.ListField(
        source="event_types", child=Text(max_length=100), max_length=100, required=False
    )
    receivesCommands = Boolean(source="receives_commands", required=False)
    isDefault = Boolean(
        source="is_default",
        required=False,
        help_text="True: it takes the commands of datasets that name no endpoint, and the default so"
        " far steps back.",
    )
    description = Text(max_length=2000, allow_blank=True, required=False)
    headers = HeadersField(
        removable=True,
        required=False,
        help_text="Headers to set, and with null to remove; the others stay.",
    )
    maxInFlight = Integer(
        source="max_in_flight", min_value=1, max_value=1000, allow_null=True, required=False
    )


class EndpointQuery(PageQuery):
    """Which endpoints."""

    archived = Choice(
        choices=["false", "true"], default="false", help_text="`true`: the archived ones instead."
    )


class DisableInput(Input):
    """Why an endpoint is disabled by hand."""

    reason = Text(max_length=200, allow_blank=True, default="")


class RotationInput(Input):
    """How long the old secret goes on signing beside the new one."""

    overlapHours = Integer(
        source="overlap_hours",
        min_value=0,
        max_value=endpoints.MAX_OVERLAP_HOURS,
        required=False,
        help_text=f"{endpoints.OVERLAP_HOURS} unless said. With 0 every old secret ends at once.",
    )
    emergency = Boolean(default=False, help_text="The same as `overlapHours: 0`.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs.pop("emergency"):
            if attrs.get("overlap_hours"):
                raise serializers.ValidationError(
                    {"overlapHours": ["In an emergency there is no overlap."]}
                )
            attrs["overlap_hours"] = 0
        return attrs


class HealthSerializer(serializers.Serializer[Any]):
    """How an endpoint does under the rule of its policy, since it was last enabled or edited. Lost
    attempts and pings count for nothing.
    """

    recentOutcomes = serializers.ListField(
        source="rule.recent_outcomes",
        child=serializers.CharField(),
        help_text="`delivered` or `failed`, newest first, of what the rule counts.",
    )
    consecutiveFailures = serializers.IntegerField(source="rule.consecutive_failures")
    failuresUntilDisabled = serializers.IntegerField(source="rule.failures_until_disabled")
    successRate = serializers.FloatField(
        source="figures.success_rate",
        allow_null=True,
        help_text="Of the last 100 attempts, 0 to 1; null where there was none.",
    )
    medianDurationMs = serializers.IntegerField(
        source="figures.median_ms", allow_null=True, help_text="Of the last 100 attempts."
    )
    since = Instant(source="figures.since", help_text="Attempts from before are not counted.")


class EndpointSerializer(serializers.Serializer[Endpoint]):
    """An endpoint. Wants ``rule`` (its health) and ``figures`` in its context, by endpoint id."""

    id = serializers.CharField()
    name = serializers.CharField()
    url = serializers.CharField()
    policy = serializers.ChoiceField(choices=list(POLICIES), source="schedule.name")
    receivesCommands = serializers.BooleanField(source="receives_commands")
    isDefault = serializers.BooleanField(source="is_default")
    eventTypes = serializers.ListField(source="event_types", child=serializers.CharField())
    description = serializers.CharField()
    headers = serializers.ListField(
        source="header_names",
        child=serializers.CharField(),
        help_text="The names of the headers that are sent along; their values are never shown.",
    )
    maxInFlight = serializers.IntegerField(source="max_in_flight", allow_null=True)
    enabled = serializers.BooleanField()
    disabledAt = Instant(source="disabled_at", allow_null=True)
    disabledReason = TextOrNull(source="disabled_reason")
    archivedAt = Instant(source="archived_at", allow_null=True)
    createdAt = Instant(source="created_at")
    health = serializers.SerializerMethodField()

    @extend_schema_field(HealthSerializer)
    def get_health(self, endpoint: Endpoint) -> Any:
        read = {name: self.context[name][endpoint.pk] for name in ("rule", "figures")}
        return HealthSerializer(read).data


class PlannedAttemptSerializer(serializers.Serializer[Any]):
    """One line of a schedule."""

    attempt = serializers.IntegerField()
    waitSeconds = serializers.IntegerField(
        source="wait_s", help_text="From the end of the attempt before."
    )
    accumulatedSeconds = serializers.IntegerField(
        source="accumulated_s", help_text="From the first attempt, if attempts took no time."
    )


class EndpointDetailSerializer(EndpointSerializer):
    """An endpoint with the schedule of its policy."""

    schedule = serializers.SerializerMethodField()

    @extend_schema_field(PlannedAttemptSerializer(many=True))
    def get_schedule(self, endpoint: Endpoint) -> Any:
        return PlannedAttemptSerializer(endpoint.schedule.planned, many=True).data


class CreatedEndpointSerializer(EndpointDetailSerializer):
    """An endpoint with its new signing secret, which nothing else shows."""

    secret = serializers.SerializerMethodField()

    def get_secret(self, endpoint: Endpoint) -> str:
        secret: str = self.context["secret"]
        return secret


class RotatedEndpointSerializer(CreatedEndpointSerializer):
    """The same, and until when the old secret signs too."""

    previousSecretExpiresAt = serializers.SerializerMethodField()

    @extend_schema_field(Instant)
    def get_previousSecretExpiresAt(self, endpoint: Endpoint) -> str:
        return rfc3339(self.context["previous_expires_at"])


class PingSerializer(serializers.Serializer[Any]):
    """A ping on its way; its attempt is in the list of deliveries, by ``eventId``."""

    deliveryId = serializers.CharField(source="pk")
    eventId = serializers.CharField(source="event_id")


class AttemptQuery(PageQuery):
    """Which attempts."""

    commandId = IdFilter(source="command_id", required=False)
    eventId = IdFilter(source="event_id", required=False)
    endpointId = IdFilter(source="endpoint_id", required=False)


class AttemptSerializer(serializers.Serializer[Attempt]):
    """One attempt to deliver; without ``finishedAt`` it is on the wire."""

    id = serializers.CharField()
    deliveryId = serializers.CharField(source="delivery_id")
    eventId = serializers.CharField(source="delivery.event_id")
    commandId = serializers.CharField(source="delivery.command_id", allow_null=True)
    endpointId = serializers.CharField(source="endpoint_id")
    number = serializers.IntegerField()
    dueAt = Instant(source="due_at")
    startedAt = Instant(source="started_at", allow_null=True)
    finishedAt = Instant(source="finished_at", allow_null=True)
    durationMs = serializers.IntegerField(source="duration_ms", allow_null=True)
    statusCode = serializers.IntegerField(source="status_code", allow_null=True)
    verdict = ChoiceOrNull([verdict.value for verdict in Verdict])
    phase = ChoiceOrNull([phase.value for phase in Phase])
    errorKind = ChoiceOrNull([kind.value for kind in ErrorKind], source="error_kind")
    error = TextOrNull()
    responseExcerpt = TextOrNull(source="excerpt_text")
    nextAttemptAt = Instant(source="next_attempt_at", allow_null=True)
    latenessMs = serializers.IntegerField(source="lateness_ms", allow_null=True)
