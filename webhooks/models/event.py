"""A fact to be told, frozen as the bytes that every attempt sends."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from organizations import guards
from organizations.ids import new_id
from organizations.models import Organization


class Event(models.Model):
    """What is delivered: a type and a body, stored once and shared by all of its deliveries.

    An event is either published to the organization's subscribers, or addressed to one endpoint: the
    dispatch of a command, a ping.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="events", db_index=False
    )
    type = models.CharField(max_length=100)
    body = models.BinaryField(help_text="UTF-8 JSON, sent byte for byte.")
    published = models.BooleanField(
        default=False,
        help_text="Told to subscribers and listed; else addressed to one endpoint.",
    )
    idempotency_key = models.CharField(max_length=200, null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        indexes = [
            # An organization's events, newest first (ids sort by time).
            models.Index(fields=["organization", "-id"], name="event_newest"),
        ]
        constraints = [
            models.UniqueConstraint(
                "organization",
                "idempotency_key",
                condition=Q(idempotency_key__isnull=False),
                name="one_event_an_idempotency_key",
            ),
        ]
        triggers = guards.append_only()

    def __str__(self) -> str:
        return f"{self.type} {self.id}"

    @property
    def message_id(self) -> str:
        """The ``webhook-id`` header: the same in every attempt, the receiver's deduplication key."""
        return f"msg_{self.id.hex}"
