"""Reads commands for pages and the API: an organization's own, with a constant number of queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from commands.models import Command, Dataset
from commands.rules import diagnosis, dispatching
from commands.rules.diagnosis import AttemptFacts, CommandFacts, Diagnosis
from commands.rules.dispatching import Readiness
from commands.rules.states import State
from organizations.actors import Actor
from organizations.models import Organization
from webhooks import endpoints
from webhooks.models import Attempt, Endpoint


def of_organization(organization: Organization) -> QuerySet[Command]:
    """The organization's commands, newest first, with all that a row shows."""
    return (
        Command.objects.filter(organization=organization)
        .select_related("dataset__experiment", "issued_by", "retracted_by", "delivery__endpoint")
        .order_by("-pk")
    )


def find(actor: Actor, command_id: UUID) -> Command:
    """The organization's command. Raises Command.DoesNotExist, also for another organization's."""
    return of_organization(actor.organization).get(pk=command_id)


@dataclass(frozen=True)
class Filters:
    """What narrows a list of commands; None does not."""

    experiment_id: UUID | None = None
    dataset_id: UUID | None = None
    state: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    search: str | None = None


def filtered(commands: QuerySet[Command], filters: Filters) -> QuerySet[Command]:
    """``since`` is inclusive and ``until`` exclusive, by the time of issue. ``search`` is the start of
    a client token, or an id.
    """
    conditions = {
        "dataset__experiment_id": filters.experiment_id,
        "dataset_id": filters.dataset_id,
        "state": filters.state,
        "issued_at__gte": filters.since,
        "issued_at__lt": filters.until,
    }
    commands = commands.filter(**{k: v for k, v in conditions.items() if v is not None})
    if filters.search:
        commands = commands.filter(_search(filters.search))
    return commands


def _search(text: str) -> Q:
    """By the start of a client token; what reads like an id may be either, since tokens often do."""
    by_token = Q(client_token__startswith=text)
    try:
        return by_token | Q(pk=UUID(text))
    except ValueError:
        return by_token


def attempts_of(command: Command) -> list[Attempt]:
    """The command's attempts, newest first."""
    if command.delivery_id is None:
        return []
    return list(Attempt.objects.filter(delivery_id=command.delivery_id).order_by("-number"))


def endpoint_for(dataset: Dataset) -> Endpoint | None:
    """Where the dataset's commands would go now."""
    return endpoints.for_commands(dataset.organization_id, dataset.endpoint_id)


def readiness(command: Command, dataset: Dataset, endpoint: Endpoint | None) -> Readiness:
    """What a dispatch of the command depends on."""
    return Readiness(
        state=State(command.state),
        dataset_armed=dataset.armed,
        endpoint_enabled=endpoint.enabled if endpoint else None,
    )


def dispatch_refusal(command: Command) -> str | None:
    """Why a dispatch would be refused now, to show before; the dispatch itself decides under locks."""
    dataset = command.dataset
    return dispatching.refusal(readiness(command, dataset, endpoint_for(dataset)))


def diagnose(command: Command, attempts: Sequence[Attempt]) -> Diagnosis:
    """What happened to the command and what to do next, in words."""
    delivery = command.delivery
    return diagnosis.diagnose(
        CommandFacts(
            state=State(command.state),
            dispatch_refusal=command.dispatch_refusal,
            failure_reason=command.failure_reason,
            delivered_at=command.delivered_at,
            ack_deadline=command.ack_deadline,
            next_attempt_at=delivery.next_attempt_at if delivery else None,
            attempt_in_flight=bool(delivery and delivery.lease_until),
            attempts_planned=delivery.schedule.attempts if delivery else 0,
        ),
        [_attempt_facts(attempt) for attempt in sorted(attempts, key=lambda a: a.number)],
    )


def _attempt_facts(attempt: Attempt) -> AttemptFacts:
    return AttemptFacts(
        number=attempt.number,
        verdict=attempt.verdict,
        status_code=attempt.status_code,
        error_kind=attempt.error_kind,
        error=attempt.error,
        location=attempt.location,
    )
