"""Puts commands on record, once for each client token however often and by however many it is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction

from commands import queries, timeline
from commands.errors import IssueRefused, ReissueRefused
from commands.models import Command, CommandEvent, Dataset
from commands.rules.fingerprint import fingerprint
from commands.rules.states import REISSUABLE, State
from organizations import audit, exact_json
from organizations.actors import Actor

Kind = CommandEvent.Kind


@dataclass(frozen=True)
class Issued:
    """A command, and whether this call made it or found it."""

    command: Command
    created: bool


def issue(actor: Actor, dataset: Dataset, client_token: str, name: str, parameters: Any) -> Issued:
    """Put a command on record. ``parameters`` is a JSON object as ``exact_json`` reads it.

    The same token with the same content returns the command that exists, however many ask at once;
    with other content IssueRefused(``client_token_conflict``) is raised. Raises Dataset.DoesNotExist
    for another organization's.
    """
    actor.require("commands:issue")
    if dataset.organization_id != actor.organization.pk:
        raise Dataset.DoesNotExist
    command = Command(
        organization=actor.organization,
        dataset=dataset,
        client_token=client_token,
        name=name,
        parameters=exact_json.dumps(parameters),
        issued_by=actor.user,
    )
    return _issue(actor, command)


def reissue(actor: Actor, original_id: UUID, client_token: str) -> Issued:
    """Issue the same order again as a new command, linked to the one that came to nothing.

    A token that stands for anything but an earlier call of this is refused, as ``issue`` does.
    """
    actor.require("commands:issue")
    original = queries.find(actor, original_id)
    if original.state not in REISSUABLE:
        raise ReissueRefused("not_reissuable", original)
    command = Command(
        organization=actor.organization,
        dataset=original.dataset,
        client_token=client_token,
        name=original.name,
        parameters=original.parameters,
        issued_by=actor.user,
        reissue_of=original,
    )
    return _issue(actor, command)


def _issue(actor: Actor, command: Command) -> Issued:
    try:
        with transaction.atomic():
            command.save(force_insert=True)
            timeline.write(command, Kind.ISSUED, actor, to_state=State.LOGGED)
            if command.reissue_of:
                detail = f"as {command.pk}"
                timeline.write(command.reissue_of, Kind.REISSUED, actor, detail=detail)
            audit.record(actor, "command.issue", command, after={"state": State.LOGGED})
    except IntegrityError:
        return Issued(_same_command(actor, command), created=False)
    return Issued(command, created=True)


def _same_command(actor: Actor, wanted: Command) -> Command:
    existing = Command.objects.select_related("dataset").get(
        organization=actor.organization, client_token=wanted.client_token
    )
    unlinked = wanted.reissue_of_id not in (None, existing.reissue_of_id)
    if unlinked or _fingerprint(existing) != _fingerprint(wanted):
        raise IssueRefused("client_token_conflict", existing)
    return existing


def _fingerprint(command: Command) -> str:
    parameters = exact_json.dumps(command.parameters_value, sort_keys=True)
    return fingerprint(str(command.dataset_id), command.name, parameters)
