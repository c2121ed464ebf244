"""Deliveries, which are the queue, and attempts, which are the record."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from organizations import guards
from organizations.ids import new_id
from organizations.models import Organization
from webhooks.models.endpoint import Endpoint
from webhooks.models.event import Event
from webhooks.policies import of_delivery
from webhooks.rules.policies import Policy
from webhooks.rules.verdicts import Phase, Verdict

DELIVERY_TRANSITIONS = (
    ("pending", "delivered"),
    ("pending", "failed"),
    ("pending", "cancelled"),
)


class Delivery(models.Model):
    """One event on its way to one endpoint. This row is the queue.

    A pending delivery either waits (``next_attempt_at``) or has an attempt in flight
    (``lease_until``): a constraint says so, hence no state exists that only a person could un-stick.
    A cancelled delivery may still have its last attempt in flight, whose outcome is then recorded.
    """

    class State(models.TextChoices):
        PENDING = "pending"
        DELIVERED = "delivered"
        FAILED = "failed"
        CANCELLED = "cancelled"

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey(
        Organization,
        on_delete=models.PROTECT,
        related_name="deliveries",
        db_index=False,
    )
    endpoint = models.ForeignKey(
        Endpoint, on_delete=models.PROTECT, related_name="deliveries", db_index=False
    )
    event = models.ForeignKey(Event, on_delete=models.PROTECT, related_name="deliveries")
    # The command that this delivery carries. It lives one layer up, so this is no foreign key.
    command_id = models.UUIDField(null=True, editable=False)
    is_ping = models.BooleanField(default=False, help_text="A test: counts for no rule.")
    policy = models.CharField(max_length=32, help_text="The policy it started with.")
    policy_terms = models.JSONField(
        null=True, help_text="Of a policy from the settings: what it said then."
    )
    state = models.CharField(max_length=16, choices=State, default=State.PENDING)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_attempt_at = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True)
    failure_reason = models.CharField(max_length=32, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    settled_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name_plural = "deliveries"
        indexes = [
            # The claim: an endpoint's due deliveries, oldest first.
            models.Index(
                fields=["endpoint", "next_attempt_at"],
                condition=Q(next_attempt_at__isnull=False),
                name="delivery_due_by_endpoint",
            ),
            # The clock: when is the next one due, and how old is the oldest that is?
            models.Index(
                fields=["next_attempt_at"],
                condition=Q(next_attempt_at__isnull=False),
                name="delivery_due",
            ),
            # The claim again (how many are in flight at an endpoint?) and the sweep of leases.
            models.Index(
                fields=["endpoint", "lease_until"],
                condition=Q(lease_until__isnull=False),
                name="delivery_in_flight",
            ),
            # An organization's deliveries, newest first (ids sort by time).
            models.Index(fields=["organization", "-id"], name="delivery_newest"),
            # A command's delivery.
            models.Index(
                fields=["command_id"],
                condition=Q(command_id__isnull=False),
                name="delivery_command",
            ),
            # The commands that went to an endpoint, newest first.
            models.Index(
                fields=["endpoint", "-command_id"],
                condition=Q(command_id__isnull=False),
                name="delivery_command_by_endpoint",
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(next_attempt_at__isnull=True) | Q(lease_until__isnull=True),
                name="delivery_waits_or_is_in_flight",
            ),
            models.CheckConstraint(
                condition=~Q(state="pending")
                | Q(next_attempt_at__isnull=False)
                | Q(lease_until__isnull=False),
                name="pending_delivery_has_a_time",
            ),
            models.CheckConstraint(
                condition=Q(state="pending") | Q(next_attempt_at__isnull=True),
                name="settled_delivery_waits_for_nothing",
            ),
            models.CheckConstraint(
                condition=Q(state="pending") | Q(settled_at__isnull=False),
                name="settled_delivery_says_when",
            ),
        ]
        triggers = [
            guards.starts_as("state", "pending"),
            guards.transitions("state", DELIVERY_TRANSITIONS),
            guards.frozen(
                "id",
                "organization",
                "endpoint",
                "event",
                "command_id",
                "is_ping",
                "policy",
                "policy_terms",
                "created_at",
            ),
            guards.frozen_once_set("settled_at"),
            *guards.never_deleted(),
        ]

    def __str__(self) -> str:
        return str(self.id)

    @property
    def schedule(self) -> Policy:
        """The policy this delivery started with."""
        return of_delivery(self.policy, self.policy_terms)


class Attempt(models.Model):
    """One POST, reserved before it is sent. Once finished it never changes.

    ``due_at`` is when it was to start, ``claimed_at`` when a worker took it, ``started_at`` when it
    began (unknown when the worker died), all by the database's clock.
    """

    delivery = models.ForeignKey(
        Delivery, on_delete=models.PROTECT, related_name="attempt_rows", db_index=False
    )
    endpoint = models.ForeignKey(
        Endpoint, on_delete=models.PROTECT, related_name="attempts", db_index=False
    )
    number = models.PositiveSmallIntegerField()
    worker = models.CharField(max_length=100, help_text="Host and process that took it.")
    due_at = models.DateTimeField()
    claimed_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    duration_ms = models.PositiveIntegerField(null=True)
    verdict = models.CharField(
        max_length=16, blank=True, choices=[(verdict, verdict) for verdict in Verdict]
    )
    status_code = models.PositiveSmallIntegerField(null=True)
    phase = models.CharField(
        max_length=8,
        blank=True,
        # Workers of the version before write rows without it while the new one is being installed.
        db_default="",
        choices=[(phase.value, phase.value) for phase in Phase],
        help_text="How far it came; empty where nobody knows.",
    )
    error_kind = models.CharField(max_length=32, blank=True)
    error = models.CharField(max_length=500, blank=True)
    response_excerpt = models.BinaryField(
        default=b"", help_text="The start of the answer's body, for people to read."
    )
    excerpt_truncated = models.BooleanField(default=False)
    retry_after = models.CharField(max_length=100, blank=True)
    location = models.CharField(max_length=500, blank=True)
    next_attempt_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            # An endpoint's attempts, newest first: its page and its health.
            models.Index(fields=["endpoint", "-id"], name="attempt_newest_by_endpoint"),
        ]
        constraints = [
            # Two workers never make the same attempt.
            models.UniqueConstraint("delivery", "number", name="one_attempt_a_number"),
            models.CheckConstraint(
                condition=Q(finished_at__isnull=True, verdict="")
                | Q(finished_at__isnull=False) & ~Q(verdict=""),
                name="finished_attempt_has_a_verdict",
            ),
        ]
        triggers = [
            guards.frozen_row_once_set("finished_at"),
            guards.frozen("id", "delivery", "endpoint", "number", "worker", "due_at", "claimed_at"),
            *guards.never_deleted(),
        ]

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.delivery_id}"

    @property
    def lateness_ms(self) -> int | None:
        """Milliseconds from when it was due to when it started; None while it has not."""
        if self.started_at is None:
            return None
        return round((self.started_at - self.due_at).total_seconds() * 1000)

    @property
    def excerpt_text(self) -> str:
        """The excerpt as text: UTF-8 with replacement, whatever the receiver claimed to send."""
        return bytes(self.response_excerpt).decode("utf-8", "replace")


class Heartbeat(models.Model):
    """The last sign of life of a cluster: written by a task, so that all of its parts took part."""

    cluster = models.CharField(primary_key=True, max_length=64)
    host = models.CharField(max_length=255)
    started_at = models.DateTimeField(db_default=Now())
    beat_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(F("beat_at").desc(), name="heartbeat_newest")]

    def __str__(self) -> str:
        return f"{self.host} {self.beat_at:%H:%M:%S}"
