"""A fact to be told, frozen as the bytes that every attempt sends."""

from __future__ import annotations

from typing import Any

import pgtrigger
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from pgtrigger import compiler

from organizations import exact_json, guards
from organizations.ids import new_id
from organizations.models import Organization

# Where a transaction that publishes holds an advisory lock (shared, so it never waits): the upper 16
# bits of the key are these, the rest is a place in the feed that no event of the transaction is before.
FEED_LOCK = 0x6665  # "fe"
PLACES = "webhooks_event_place"


class PlacedSql(guards.GuardSql):
    """The installation script of the trigger below, with the sequence it draws from."""

    def get_template(self) -> str:
        return f"CREATE SEQUENCE IF NOT EXISTS {PLACES};" + super().get_template()


class Placed(guards.Guard):
    """Gives each published event its place in the feed, whoever inserts it.

    Places are drawn in the order in which events are made, but transactions commit in any order. So a
    transaction announces, *before* it draws its first place, the lowest one that it can get: its lock
    says so until it has ended. Whoever reads up to the lowest announced place sees all there will ever
    be before it; ``webhooks.feed`` does. One lock is enough for a transaction. The setting remembers
    it, and is forgotten together with the lock when a savepoint is rolled back.
    """

    def __init__(self) -> None:
        super().__init__(
            name="placed",
            operation=pgtrigger.Insert,
            condition=pgtrigger.Q(new__published=True),
            refusal="",
        )

    def get_func(self, model: type[models.Model]) -> str:  # type: ignore[override]
        return f"""
            IF coalesce(current_setting('{PLACES}.announced', true), '') = '' THEN
                PERFORM pg_advisory_xact_lock_shared(
                    ({FEED_LOCK}::bigint << 48) + last_value + is_called::int) FROM {PLACES};
                PERFORM set_config('{PLACES}.announced', 'yes', true);
            END IF;
            NEW.place := nextval('{PLACES}');
            RETURN NEW;
        """

    def compile(self, model: type[models.Model]) -> compiler.Trigger:  # type: ignore[override]
        compiled = super().compile(model)
        return compiler.Trigger(name=compiled.name, sql=PlacedSql(**compiled.sql.kwargs))


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
    place = models.BigIntegerField(
        null=True, editable=False, help_text="Where it stands in the feed; the database says."
    )
    hops = models.PositiveSmallIntegerField(
        db_default=0, help_text="How many events, one caused by the other, came before it."
    )
    idempotency_key = models.CharField(max_length=200, null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        indexes = [
            # An organization's events, newest first (ids sort by time).
            models.Index(fields=["organization", "-id"], name="event_newest"),
            # The feed: an organization's published events, in their order.
            models.Index(
                fields=["organization", "place"], condition=Q(published=True), name="event_feed"
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                "organization",
                "idempotency_key",
                condition=Q(idempotency_key__isnull=False),
                name="one_event_an_idempotency_key",
            ),
            models.CheckConstraint(
                condition=Q(published=True, place__isnull=False)
                | Q(published=False, place__isnull=True),
                name="published_event_has_its_place",
            ),
        ]
        triggers = [Placed(), *guards.append_only()]

    def __str__(self) -> str:
        return f"{self.type} {self.id}"

    @property
    def value(self) -> dict[str, Any]:
        """The body as a JSON value, numbers exact."""
        value: dict[str, Any] = exact_json.loads(bytes(self.body))
        return value

    @property
    def message_id(self) -> str:
        """The ``webhook-id`` header: the same in every attempt, the receiver's deduplication key."""
        return f"msg_{self.id.hex}"
