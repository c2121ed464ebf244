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
    Text,
    TextOrNull,
)
from organizations.api.inputs import Input
from organizations.api.paging import PageQuery
from webhooks.models import Attempt, Endpoint
from webhooks.policies import POLICIES
from webhooks.rules.policies import EVENT
from webhooks.rules.verdicts import ErrorKind, Verdict


class NewEndpointInput(Input):
    """An endpoint to register."""

    name = Text(max_length=200)
    url = Text(help_text="https, at a public address.")
    policy = Choice(choices=list(POLICIES), default=EVENT.name)
    eventTypes = serializers.ListField(
        source="event_types", child=Text(max_length=100), max_length=100, default=list
    )
    receivesCommands = Boolean(
        source="receives_commands",
        required=False,
        help_text="True for the policy `command` unless said.",
    )
    description = Text(max_length=2000, allow_blank=True, default="")


class DisableInput(Input):
    """Why an endpoint is disabled by hand."""

    reason = Text(max_length=200, allow_blank=True, default="")


class HealthSerializer(serializers.Serializer[Any]):
    """How an endpoint does under the rule of its policy, since it was last enabled or edited."""

    recentOutcomes = serializers.ListField(
        source="recent_outcomes",
        child=serializers.CharField(),
        help_text="`delivered` or `failed`, newest first.",
    )
    consecutiveFailures = serializers.IntegerField(source="consecutive_failures")
    failuresUntilDisabled = serializers.IntegerField(source="failures_until_disabled")


class EndpointSerializer(serializers.Serializer[Endpoint]):
    """An endpoint. Wants ``health`` in its context, by endpoint id."""

    id = serializers.CharField()
    name = serializers.CharField()
    url = serializers.CharField()
    policy = serializers.ChoiceField(choices=list(POLICIES))
    receivesCommands = serializers.BooleanField(source="receives_commands")
    isDefault = serializers.BooleanField(source="is_default")
    eventTypes = serializers.ListField(source="event_types", child=serializers.CharField())
    description = serializers.CharField()
    enabled = serializers.BooleanField()
    disabledAt = Instant(source="disabled_at", allow_null=True)
    disabledReason = TextOrNull(source="disabled_reason")
    createdAt = Instant(source="created_at")
    health = serializers.SerializerMethodField()

    @extend_schema_field(HealthSerializer)
    def get_health(self, endpoint: Endpoint) -> Any:
        return HealthSerializer(self.context["health"][endpoint.pk]).data


class CreatedEndpointSerializer(EndpointSerializer):
    """A new endpoint with its signing secret, which nothing else shows."""

    secret = serializers.SerializerMethodField()

    def get_secret(self, endpoint: Endpoint) -> str:
        secret: str = self.context["secret"]
        return secret


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
    errorKind = ChoiceOrNull([kind.value for kind in ErrorKind], source="error_kind")
    error = TextOrNull()
    responseExcerpt = TextOrNull(source="excerpt_text")
    nextAttemptAt = Instant(source="next_attempt_at", allow_null=True)
    latenessMs = serializers.IntegerField(source="lateness_ms", allow_null=True)
