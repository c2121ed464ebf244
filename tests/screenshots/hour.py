"""Moves what was made within a second to when it is to have happened: over the last hour.

The database refuses to change the past. Here the owner of the tables lifts its guards for one transaction,
on data that nobody keeps.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction

from commands.models import Command, CommandEvent, Dataset
from organizations.clock import database_now, rfc3339
from organizations.models import ApiKey, AuditEntry, Notice, User
from tests.factories import attempts
from tests.screenshots.scene import Day, Told
from webhooks.models import Attempt, Delivery, Endpoint, Event

GUARDED = (
    "commands_command",
    "commands_commandevent",
    "organizations_apikey",
    "organizations_auditentry",
    "organizations_notice",
    "webhooks_attempt",
    "webhooks_delivery",
    "webhooks_endpoint",
    "webhooks_event",
)
# Attempts are numbered in the order of time.
RENUMBERED = """
UPDATE webhooks_attempt a SET id = numbered.id + numbered.place
  FROM (SELECT a.id AS old, max(a.id) OVER () AS id,
               row_number() OVER (ORDER BY a.claimed_at, a.id) AS place
          FROM webhooks_attempt a) numbered
 WHERE a.id = numbered.old
"""
DISPATCHED_AFTER = timedelta(seconds=2.5)
REPORTED_AFTER = timedelta(seconds=6)
WITHDRAWN_AFTER = timedelta(seconds=14)
MAILED_AFTER = timedelta(seconds=12)
LATENESS = timedelta(milliseconds=6)
ARMED = timedelta(hours=2)
ACK_TIMEOUT = timedelta(seconds=300)
LONG_AGO = timedelta(days=3)


def spread(day: Day) -> None:
    """Give every row of the organization its time."""
    with transaction.atomic(), _guards_lifted():
        now = database_now()
        before = now - LONG_AGO
        AuditEntry.objects.exclude(act="endpoint.ping").update(at=before)
        Endpoint.objects.update(created_at=before, health_since=before)
        ApiKey.objects.update(created_at=before, last_used_at=now - REPORTED_AFTER)
        User.objects.update(last_login=now - ARMED)
        Dataset.objects.filter(armed=True).update(armed_at=now - ARMED)
        stories = [_Story(told, now) for told in day.told]
        for story in stories:
            story.write()
        _disabled(stories)
        _events({str(story.told.command.pk): story for story in stories})
        with connection.cursor() as cursor:
            cursor.execute(RENUMBERED)


@contextlib.contextmanager
def _guards_lifted() -> Iterator[None]:
    def alter(how: str) -> None:
        with connection.cursor() as cursor:
            for table in GUARDED:
                cursor.execute(f"ALTER TABLE {table} {how} TRIGGER USER")

    alter("DISABLE")
    yield
    # Deferred checks of foreign keys that wait would forbid it.
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    alter("ENABLE")


@dataclass
class _Story:
    """One command's times."""

    told: Told
    now: datetime

    def __post_init__(self) -> None:
        self.command = Command.objects.select_related("delivery", "dataset").get(
            pk=self.told.command.pk
        )
        self.issued = self.now - timedelta(seconds=self.told.ago_s)
        self.dispatched = self.issued + DISPATCHED_AFTER
        self.deadline = self.dispatched + self._timeout()
        self.last = self.dispatched

    def _timeout(self) -> timedelta:
        if self.command.ack_deadline is None or self.command.dispatched_at is None:
            return ACK_TIMEOUT
        return (self.command.ack_deadline - self.command.dispatched_at) or ACK_TIMEOUT

    @property
    def settled(self) -> datetime:
        return {
            "acked": self.last + REPORTED_AFTER,
            "nacked": self.last + REPORTED_AFTER,
            "timed_out": self.deadline,
            "retracted": self.dispatched + WITHDRAWN_AFTER,
        }.get(self.command.state, self.last)

    @property
    def by_kind(self) -> Mapping[str, datetime]:
        """When each line of its timeline happened; those not named, when it was settled."""
        return {
            "issued": self.issued,
            "dispatched": self.dispatched,
            "dispatch_refused": self.dispatched,
            "delivered": self.last,
        }

    def write(self) -> None:
        if self.command.delivery:
            self._write_delivery(self.command.delivery)
        self._write_command()
        for line in CommandEvent.objects.filter(command=self.command):
            at = self.by_kind.get(line.kind, self.settled)
            CommandEvent.objects.filter(pk=line.pk).update(at=at)
        for entry in AuditEntry.objects.filter(target_id=str(self.command.pk)):
            kind = {"command.issue": "issued", "command.dispatch": "dispatched"}.get(entry.act, "")
            at = self.by_kind.get(kind, self.settled)
            AuditEntry.objects.filter(pk=entry.pk).update(at=at)
        told = Notice.objects.filter(subject_id=self.command.pk)
        told.update(happened_at=self.settled)
        told.exclude(settled_at=None).update(settled_at=self.settled + MAILED_AFTER)

    def _write_command(self) -> None:
        times: dict[str, Any] = {"issued_at": self.issued}
        for column, at in (
            ("dispatched_at", self.dispatched),
            ("ack_deadline", self.deadline),
            ("delivered_at", self.last),
            ("settled_at", self.settled),
            ("retracted_at", self.settled),
        ):
            if getattr(self.command, column):
                times[column] = at
        Command.objects.filter(pk=self.command.pk).update(**times)

    def _write_delivery(self, delivery: Delivery) -> None:
        due = self.dispatched
        for made, took_ms in zip(attempts(delivery), [*self.told.durations, 0], strict=False):
            started = due + LATENESS * (1 + took_ms % 5) / 3
            self.last = started + timedelta(milliseconds=took_ms)
            wait = delivery.schedule.wait_after(made.number)
            due_next = (
                self.last + timedelta(seconds=wait) if wait and made.next_attempt_at else None
            )
            Attempt.objects.filter(pk=made.pk).update(
                due_at=due,
                claimed_at=started,
                started_at=started,
                finished_at=self.last if made.finished_at else None,
                duration_ms=took_ms if made.finished_at else None,
                next_attempt_at=due_next,
            )
            due = due_next or due
        self._write_rest(delivery, due)

    def _write_rest(self, delivery: Delivery, due: datetime) -> None:
        Delivery.objects.filter(pk=delivery.pk).update(
            created_at=self.dispatched,
            next_attempt_at=due if delivery.next_attempt_at else None,
            settled_at=self.settled if delivery.settled_at else None,
        )
        Event.objects.filter(pk=delivery.event_id).update(created_at=self.dispatched)


def _disabled(stories: list[_Story]) -> None:
    """The endpoint that its rule disabled, with its last failure; what waited there ended then."""
    for endpoint in Endpoint.objects.filter(enabled=False):
        there = [s for s in stories if s.command.dataset.endpoint_id == endpoint.pk]
        at = max(story.last for story in there)
        Endpoint.objects.filter(pk=endpoint.pk).update(disabled_at=at)
        Notice.objects.filter(subject_id=endpoint.pk).update(
            happened_at=at, settled_at=at + MAILED_AFTER
        )
        Event.objects.filter(type="endpoint.disabled").update(created_at=at)


def _events(stories: Mapping[str, _Story]) -> None:
    """What was told of commands, and its deliveries."""
    for event in Event.objects.filter(published=True, type__startswith="command."):
        story = stories[event.value["data"]["command"]["id"]]
        kind = event.type.removeprefix("command.")
        at = story.by_kind.get(kind, story.settled)
        stamp = event.value["timestamp"].encode()
        body = bytes(event.body).replace(stamp, rfc3339(at).encode(), 1)
        Event.objects.filter(pk=event.pk).update(created_at=at, body=body)
    for delivery in Delivery.objects.filter(event__published=True).select_related("event"):
        _delivered(delivery, delivery.event.created_at)


def _delivered(delivery: Delivery, at: datetime) -> None:
    due, finished = at, at
    for made in attempts(delivery):
        started = due + LATENESS
        finished = started + timedelta(milliseconds=made.duration_ms or 0)
        wait = delivery.schedule.wait_after(made.number)
        due_next = finished + timedelta(seconds=wait) if wait and made.next_attempt_at else None
        Attempt.objects.filter(pk=made.pk).update(
            due_at=due,
            claimed_at=started,
            started_at=started,
            finished_at=finished,
            next_attempt_at=due_next,
        )
        due = due_next or due
    settled = finished if delivery.settled_at else None
    Delivery.objects.filter(pk=delivery.pk).update(created_at=at, settled_at=settled)
