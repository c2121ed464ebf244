"""An integrator's HTTPS address, and the secrets that sign what is sent to it."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from organizations import guards
from organizations.ids import new_id
from organizations.models import Organization
from webhooks.policies import of_endpoint
from webhooks.rules.policies import Policy


class Endpoint(models.Model):
    """Where an organization's webhooks go.

    Counters of health are not stored: they follow from the attempts since ``health_since``.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="endpoints"
    )
    name = models.CharField(max_length=200)
    url = models.CharField("URL", max_length=2048)
    policy = models.CharField(max_length=32)
    receives_commands = models.BooleanField(default=False)
    is_default = models.BooleanField(
        default=False, help_text="Takes the commands of datasets that name no endpoint."
    )
    event_types = ArrayField(models.CharField(max_length=100), default=list, blank=True)
    description = models.TextField(blank=True, max_length=2000)
    max_in_flight = models.PositiveSmallIntegerField(
        null=True,
        blank=True,
        help_text="Attempts in flight at once at most; empty means the console's setting.",
    )
    header_names = ArrayField(
        models.CharField(max_length=100),
        default=list,
        blank=True,
        editable=False,
        help_text="Headers that the owner has sent along.",
    )
    headers_ciphertext = models.TextField(default="", blank=True, editable=False)
    enabled = models.BooleanField(default=True)
    disabled_at = models.DateTimeField(null=True, blank=True)
    disabled_reason = models.CharField(max_length=200, blank=True)
    health_since = models.DateTimeField(
        db_default=Now(), help_text="Outcomes before this count for no rule."
    )
    # The same as the id of an attempt, so that health is read from the end of an index and never through
    # what came before. An attempt that was on the wire then is not counted either.
    health_after = models.BigIntegerField(default=0, editable=False)
    archived_at = models.DateTimeField(
        null=True, blank=True, help_text="Not used any more, for good; its history stays."
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                "organization",
                condition=Q(is_default=True),
                name="one_default_endpoint",
            ),
            models.CheckConstraint(
                condition=Q(is_default=False) | Q(receives_commands=True),
                name="default_endpoint_receives_commands",
            ),
            # Zero would hold deliveries for ever.
            models.CheckConstraint(
                condition=Q(max_in_flight__isnull=True) | Q(max_in_flight__gte=1),
                name="endpoint_lets_one_attempt_through",
            ),
            models.CheckConstraint(
                condition=Q(enabled=True) | Q(disabled_at__isnull=False),
                name="disabled_endpoint_says_since_when",
            ),
            models.CheckConstraint(
                condition=Q(archived_at__isnull=True) | Q(enabled=False, is_default=False),
                name="archived_endpoint_is_not_used",
            ),
        ]
        triggers = [
            guards.frozen("id", "organization", "created_at"),
            guards.frozen_once_set("archived_at"),
            *guards.never_deleted(),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def schedule(self) -> Policy:
        """The policy that new deliveries to this endpoint start with."""
        return of_endpoint(self.policy, self.receives_commands)


class EndpointSecret(models.Model):
    """A signing secret, encrypted. Without ``expires_at`` it is the current one."""

    endpoint = models.ForeignKey(Endpoint, on_delete=models.PROTECT, related_name="secrets")
    ciphertext = models.TextField(editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                "endpoint",
                condition=Q(expires_at__isnull=True),
                name="one_current_secret",
            ),
        ]
        triggers = guards.never_deleted()

    def __str__(self) -> str:
        return f"signing secret of {self.endpoint_id}"
