"""Reads commands for pages and the API: an organization's own, with a constant number of queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import F, Func, IntegerField, Q, QuerySet

from commands.models import Command, CommandEvent, Dataset
from commands.rules import diagnosis, dispatching
from commands.rules.diagnosis import AttemptFacts, CommandFacts, Diagnosis
from commands.rules.dispatching import Readiness
from commands.rules.states import State
from organizations.actors import Actor
from organizations.ids import first_id_at
from organizations.models import ApiKey, Organization, User
from organizations.patience import at_most
from webhooks import endpoints
from webhooks.models import Attempt, Endpoint

# A command's id says when it was issued by the clock of the machine that issued it, ``issued_at`` by the
# database's. Ids this much outside of a time are still looked at.
CLOCKS_DIFFER: Final = timedelta(hours=1)
# A command's id on its timeline.
LINES: Final = "timeline__command_id"
# A search that walks longer than this is not going to please whoever waits for it.
SEARCH_S: Final = 2.0


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
    """What narrows a list of commands; None does not.

    ``since`` is inclusive and ``until`` exclusive, by the time of issue. ``search`` is the start of a
    client token, or an id. ``issued_by_id`` is a user, ``api_key_id`` the key that was used. ``refused``
    are those that are still logged because their dispatch was refused.
    """

    experiment_id: UUID | None = None
    dataset_id: UUID | None = None
    endpoint_id: UUID | None = None
    issued_by_id: UUID | None = None
    api_key_id: UUID | None = None
    state: str | None = None
    refused: bool = False
    since: datetime | None = None
    until: datetime | None = None
    token_prefix: str | None = None
    search: str | None = None


@dataclass(frozen=True)
class Span:
    """Ids between two others, which are not part of it; None is no bound."""

    after: UUID | str | None = None
    before: UUID | str | None = None


def matching(
    organization: Organization, filters: Filters, span: Span = Span()
) -> QuerySet[Command]:
    """The organization's commands that pass the filters, newest first.

    Each filter has an index that is ordered by the command's id, so that a page is read from its start.
    Filters that leave next to nothing together may still walk far: see ``searching``.
    """
    ids = _ids(filters)
    # In one call: each further one would look for a timeline's line of its own.
    conditions = {**_conditions(filters), **_bounds(ids, filters, span)}
    commands = of_organization(organization).filter(**conditions)
    if filters.search:
        commands = commands.filter(_search(filters.search))
    return commands.order_by(f"-{ids}")


@contextmanager
def searching(filters: Filters) -> Iterator[None]:
    """Read commands through filters inside. Raises TookTooLong; a shorter time makes it quick."""
    with at_most(SEARCH_S) if filters != Filters() else nullcontext():
        yield


def _ids(filters: Filters) -> str:
    """Where the command's id stands in the index that serves these filters."""
    if filters.issued_by_id or filters.api_key_id:
        return LINES
    return "delivery__command_id" if filters.endpoint_id else "pk"


def _bounds(ids: str, filters: Filters, span: Span) -> dict[str, Any]:
    """Where to begin and end in that index.

    Of a line's command the planner knows that it is the command, but not that both have the same bounds.
    """
    since, until = filters.since, filters.until
    bounds = {
        "gt": span.after,
        "lt": span.before,
        "gte": first_id_at(since, -CLOCKS_DIFFER) if since else None,
        "lte": first_id_at(until, CLOCKS_DIFFER) if until else None,
    }
    return {
        f"{name}__{bound}": value
        for name in ([ids, "pk"] if ids == LINES else [ids])
        for bound, value in bounds.items()
        if value is not None
    }


def _conditions(filters: Filters) -> dict[str, Any]:
    conditions: dict[str, Any] = {
        "dataset_id": filters.dataset_id,
        "delivery__endpoint_id": filters.endpoint_id,
        # What the index is limited to.
        "delivery__command_id__isnull": False if filters.endpoint_id else None,
        "timeline__user_id": filters.issued_by_id,
        "timeline__api_key_id": filters.api_key_id,
        "state": State.LOGGED if filters.refused else filters.state,
        # In words that an index of them has, too.
        "dispatch_refusal__gt": "" if filters.refused else None,
        "issued_at__gte": filters.since,
        "issued_at__lt": filters.until,
        "client_token__startswith": filters.token_prefix,
    }
    if filters.issued_by_id or filters.api_key_id:
        conditions["timeline__kind"] = CommandEvent.Kind.ISSUED
    if filters.experiment_id:
        # By value, so that the planner knows how many commands they have.
        found = Dataset.objects.filter(experiment_id=filters.experiment_id)
        conditions["dataset_id__in"] = list(found.values_list("pk", flat=True))
    return {name: value for name, value in conditions.items() if value is not None}


def _search(text: str) -> Q:
    """By the start of a client token; what reads like an id may be either, since tokens often do."""
    by_token = Q(client_token__startswith=text)
    try:
        return by_token | Q(pk=UUID(text))
    except ValueError:
        return by_token


def issuer_id(email: str) -> UUID | None:
    """Whose address this is."""
    return User.objects.filter(email=email).values_list("pk", flat=True).first()


def api_key_id(organization: Organization, start: str) -> UUID | None:
    """Which of the organization's keys begins with ``cck_`` and these eight characters."""
    keys = ApiKey.objects.filter(organization=organization, prefix=start.removeprefix("cck_"))
    return keys.values_list("pk", flat=True).first()


def without_parameters(commands: QuerySet[Command]) -> QuerySet[Command]:
    """Leave the parameters, which may be large, to ``read_parameters``; say how large in
    ``parameters_size``, which the database knows without reading them.
    """
    size = Func(F("parameters"), function="octet_length", output_field=IntegerField())
    return commands.defer("parameters").annotate(parameters_size=size)


def read_parameters(commands: Sequence[Command]) -> None:
    """Read what ``without_parameters`` left."""
    texts = Command.objects.filter(pk__in=[command.pk for command in commands])
    found = dict(texts.values_list("pk", "parameters"))
    for command in commands:
        command.parameters = found[command.pk]


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


def diagnose(
    command: Command,
    attempts: Sequence[Attempt],
    worded: Callable[[datetime], str] = diagnosis.in_utc,
) -> Diagnosis:
    """What happened to the command and what to do next, in words; ``worded`` says a time."""
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
            worded=worded,
        ),
        [_attempt_facts(attempt) for attempt in sorted(attempts, key=lambda a: a.number)],
    )


def _attempt_facts(attempt: Attempt) -> AttemptFacts:
    return AttemptFacts(
        number=attempt.number,
        verdict=attempt.verdict,
        status_code=attempt.status_code,
        phase=attempt.phase,
        error_kind=attempt.error_kind,
        error=attempt.error,
        location=attempt.location,
    )
