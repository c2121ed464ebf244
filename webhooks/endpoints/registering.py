"""Endpoints registered and edited by their owners, and chosen for commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connection, transaction

from organizations import audit
from organizations.actors import Actor
from webhooks import secrets
from webhooks.endpoints.fields import checked
from webhooks.endpoints.refusals import FieldRefused, Refused
from webhooks.endpoints.rows import counters_from_zero, facts, locked, queue_up, take_turns
from webhooks.endpoints.targets import allowed_target
from webhooks.engine import claims
from webhooks.models import Endpoint, EndpointSecret
from webhooks.rules import signing
from webhooks.rules.policies import COMMAND, EVENT

FOR_COMMANDS = """
SELECT id FROM webhooks_endpoint
 WHERE organization_id = %(organization)s AND receives_commands AND archived_at IS NULL
   AND CASE WHEN %(named)s::uuid IS NULL THEN is_default ELSE id = %(named)s END
"""


@dataclass(frozen=True)
class NewEndpoint:
    """What an owner asks for. ``receives_commands`` follows from the policy unless said."""

    name: str
    url: str
    policy: str = EVENT.name
    event_types: Sequence[str] = ()
    receives_commands: bool | None = None
    description: str = ""
    headers: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    max_in_flight: int | None = None


@dataclass(frozen=True)
class Created:
    """A new endpoint with its signing secret, which is never shown again."""

    endpoint: Endpoint
    secret: str = field(repr=False)


def create(actor: Actor, wanted: NewEndpoint) -> Created:
    """Register an endpoint. The first that receives commands becomes the organization's default.

    Raises UrlNotAllowed when webhooks may not go to its URL, FieldRefused for another value that it may
    not have, NotPermitted for anyone but an owner.
    """
    actor.require("endpoints:write")
    receives = wanted.receives_commands
    if receives is None:
        receives = wanted.policy == COMMAND.name
    fields = checked(
        {
            "name": wanted.name,
            "url": allowed_target(wanted.url).url,
            "policy": wanted.policy,
            "receives_commands": receives,
            "event_types": wanted.event_types,
            "description": wanted.description,
            "headers": wanted.headers,
            "max_in_flight": wanted.max_in_flight,
        },
        headers_ciphertext="",
    )
    secret = signing.new_secret()
    with transaction.atomic():
        take_turns(actor)
        endpoint = Endpoint.objects.create(
            organization=actor.organization,
            is_default=receives and not _has_default(actor),
            **fields,
        )
        EndpointSecret.objects.create(endpoint=endpoint, ciphertext=secrets.encrypt(secret))
        audit.record(actor, "endpoint.create", endpoint, after=facts(endpoint))
    return Created(endpoint, secret)


def edit(actor: Actor, endpoint_id: UUID, changes: Mapping[str, Any]) -> Endpoint:
    """Change fields of an endpoint, by an owner; ``headers`` maps names to values, None removes one.

    Counters of an enabled endpoint start from zero: an edit is meant to mend something, and failures from
    before it say nothing about after. A disabled one stays disabled. Once this returns, no attempt begins
    that does not follow the change. Raises UrlNotAllowed, FieldRefused, Refused when it is archived.
    """
    actor.require("endpoints:write")
    if "url" in changes:
        changes = {**changes, "url": allowed_target(changes["url"]).url}
    with transaction.atomic():
        take_turns(actor)
        endpoint = _locked_with_the_default(actor, endpoint_id)
        if endpoint.archived_at:
            raise Refused("endpoint_archived")
        if changes:
            before = facts(endpoint)
            _apply(actor, endpoint, changes)
            endpoint.refresh_from_db()
            audit.record(actor, "endpoint.edit", endpoint, before=before, after=facts(endpoint))
    return endpoint


def _locked_with_the_default(actor: Actor, endpoint_id: UUID) -> Endpoint:
    """The endpoint, and with it the default, which may have to step back; in the order of their ids, as
    everybody locks endpoints.
    """
    both = Endpoint.objects.filter(organization=actor.organization)
    ids = sorted({endpoint_id, *both.filter(is_default=True).values_list("pk", flat=True)})
    found = {pk: locked(actor, pk) for pk in ids}
    return found[endpoint_id]


def _apply(actor: Actor, endpoint: Endpoint, changes: Mapping[str, Any]) -> None:
    fields = checked(changes, endpoint.headers_ciphertext)
    is_default = _is_default_after(actor, endpoint, changes)
    claims.hold()
    if endpoint.enabled:
        fields |= counters_from_zero()
    if is_default and not endpoint.is_default:
        others = Endpoint.objects.filter(organization=actor.organization, is_default=True)
        others.update(is_default=False)
    Endpoint.objects.filter(pk=endpoint.pk).update(**{**fields, "is_default": is_default})


def _is_default_after(actor: Actor, endpoint: Endpoint, changes: Mapping[str, Any]) -> bool:
    """Whether it is the organization's default after the change. Raises FieldRefused.

    A default never just ends: commands would have nowhere to go, and nobody would have said so.
    """
    receives = changes.get("receives_commands", endpoint.receives_commands)
    wanted: bool = changes.get("is_default", endpoint.is_default)
    if endpoint.is_default and not wanted:
        raise FieldRefused("is_default", "Make another endpoint the default; this one steps back.")
    if endpoint.is_default and not receives:
        reason = "It is the default for commands. Make another endpoint the default first."
        raise FieldRefused("receives_commands", reason)
    if wanted and not receives:
        raise FieldRefused("is_default", "It receives no commands, which the default does.")
    begins_to = receives and not endpoint.receives_commands
    return wanted or (begins_to and not _has_default(actor))


def _has_default(actor: Actor) -> bool:
    return Endpoint.objects.filter(organization=actor.organization, is_default=True).exists()


def for_commands(
    organization_id: UUID, named: UUID | None, *, for_share: bool = False
) -> Endpoint | None:
    """The endpoint for a dataset's commands: the one it names, else the organization's default.

    ``for_share`` locks it against being disabled or edited until the transaction ends: what is
    dispatched to it is either before that change or after it.
    """
    if for_share and (expected := _for_commands(organization_id, named, for_share=False)):
        queue_up(expected)
    found = _for_commands(organization_id, named, for_share)
    if found is None and for_share:
        # Waiting for a default that steps back ends without a row; its successor is visible by now.
        found = _for_commands(organization_id, named, for_share)
    return Endpoint.objects.get(pk=found) if found else None


def _for_commands(organization_id: UUID, named: UUID | None, for_share: bool) -> UUID | None:
    sql = FOR_COMMANDS + "FOR SHARE" if for_share else FOR_COMMANDS
    with connection.cursor() as cursor:
        cursor.execute(sql, {"organization": organization_id, "named": named})
        row = cursor.fetchone()
    return row[0] if row else None
