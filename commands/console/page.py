"""A command's page: all it shows, read with a constant number of queries, decided before it is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import Http404

from commands import queries
from commands.console.states import look_of
from commands.console.story import Told, tell
from commands.errors import DispatchRefused, ReissueRefused
from commands.models import Command, CommandEvent
from commands.rules import dispatching
from commands.rules.diagnosis import Diagnosis
from commands.rules.states import REISSUABLE, State
from organizations.actors import Actor
from organizations.console import words
from organizations.console.looks import Look
from organizations.console.responses import revision_of
from webhooks.console import schedule
from webhooks.console.attempts import made_of
from webhooks.console.deliveries import Ahead
from webhooks.models import Attempt, Delivery, Endpoint

Kind = CommandEvent.Kind


@dataclass(frozen=True)
class Act:
    """Something an operator may do; ``obstacle`` is the sentence that says why not now."""

    name: str
    obstacle: str = ""


@dataclass(frozen=True)
class Sight:
    """Whatever of a command can change, which is all that most polls need."""

    command: Command
    attempts: Sequence[Attempt]
    timeline: Sequence[CommandEvent]
    endpoint: Endpoint | None

    @property
    def revision(self) -> str:
        """A digest of it. What else a page shows of a command changes together with its timeline."""
        dataset, delivery, endpoint = self.command.dataset, self.command.delivery, self.endpoint
        command = self.command
        facts: list[Any] = [
            (command.state, command.dispatch_refusal, command.settled_at, command.early_outcome),
            (dataset.armed, dataset.armed_at, dataset.name),
            (endpoint.pk, endpoint.enabled, endpoint.name, endpoint.url) if endpoint else None,
            [(attempt.pk, attempt.finished_at) for attempt in self.attempts],
            self.timeline[0].pk if self.timeline else None,
        ]
        if delivery:
            facts.append((delivery.next_attempt_at, delivery.lease_until))
        return revision_of(*facts)


@dataclass(frozen=True)
class CommandPage:
    """What the templates need. ``endpoint`` is where it went, or would go now."""

    command: Command
    look: Look
    attempts: Sequence[Attempt]
    timeline: Sequence[Told]
    reissues: Sequence[Command]
    endpoint: Endpoint | None
    diagnosis: Diagnosis
    line: schedule.Line | None
    clocks: Sequence[Ahead]
    acts: Sequence[Act]

    @property
    def plan(self) -> Sequence[schedule.Tick]:
        """The attempts that a dispatch would plan."""
        return schedule.plan(self.endpoint.schedule) if self.endpoint else ()


def find(actor: Actor, command_id: UUID) -> Command:
    """The organization's command, or a page that says there is none."""
    try:
        return queries.find(actor, command_id)
    except Command.DoesNotExist:
        raise Http404 from None


def sight_of(actor: Actor, command_id: UUID) -> Sight:
    """What there is of the organization's command."""
    command = find(actor, command_id)
    timeline = CommandEvent.objects.filter(command=command).select_related("user", "api_key")
    return Sight(
        command=command,
        attempts=queries.attempts_of(command) if command.delivery_id else [],
        timeline=list(timeline.order_by("-pk")),
        endpoint=command.delivery.endpoint
        if command.delivery
        else queries.endpoint_for(command.dataset),
    )


def drawn(sight: Sight, now: datetime) -> CommandPage:
    """The page of it, as it stands ``now``."""
    command, attempts, endpoint = sight.command, sight.attempts, sight.endpoint
    delivery = command.delivery
    return CommandPage(
        command=command,
        look=look_of(command.state, command.dispatch_refusal),
        attempts=attempts,
        timeline=tell(sight.timeline),
        reissues=list(Command.objects.filter(reissue_of=command).order_by("pk")),
        endpoint=endpoint,
        diagnosis=queries.diagnose(command, attempts, words.absolute),
        line=_line(command, delivery, attempts, sight.timeline, now) if delivery else None,
        clocks=_clocks(command, delivery),
        acts=_acts(command, endpoint),
    )


def _line(
    command: Command,
    delivery: Delivery,
    attempts: Sequence[Attempt],
    timeline: Sequence[CommandEvent],
    now: datetime,
) -> schedule.Line:
    assert command.dispatched_at
    assert command.ack_deadline
    reports = (line.at for line in timeline if line.kind in (Kind.ACKED, Kind.NACKED))
    return schedule.draw(
        schedule.Facts(
            policy=delivery.schedule,
            begun_at=command.dispatched_at,
            made=[made_of(attempt) for attempt in reversed(attempts)],
            next_attempt_at=delivery.next_attempt_at,
            open=delivery.state == Delivery.State.PENDING,
            waiting=command.state in (State.QUEUED, State.DELIVERED),
            now=now,
            ack_deadline=command.ack_deadline,
            reported_at=next(reports, None),
        )
    )


def _clocks(command: Command, delivery: Delivery | None) -> list[Ahead]:
    """What runs: the next attempt and, apart from it, the deadline of the report."""
    clocks: list[Ahead] = []
    if delivery and delivery.next_attempt_at:
        number = f"Attempt {delivery.attempts + 1} of {delivery.schedule.attempts}"
        clocks.append(Ahead(number, delivery.next_attempt_at, "due now"))
    if command.ack_deadline and command.state in (State.QUEUED, State.DELIVERED):
        clocks.append(Ahead("Ack deadline", command.ack_deadline, "passed"))
    return clocks


def _acts(command: Command, endpoint: Endpoint | None) -> list[Act]:
    refusal = dispatching.refusal(queries.readiness(command, command.dataset, endpoint))
    return [
        Act("dispatch", DispatchRefused.sentences[refusal] if refusal else ""),
        Act("retract", "It is retracted already." if command.state == State.RETRACTED else ""),
        Act(
            "reissue",
            "" if command.state in REISSUABLE else ReissueRefused.sentences["not_reissuable"],
        ),
    ]
