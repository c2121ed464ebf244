"""Endpoints registered and edited by their owners, and chosen for commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models.functions import Now

from organizations import audit
from organizations.actors import Actor
from webhooks import secrets
from webhooks.endpoints.rows import facts, locked
from webhooks.endpoints.targets import allowed_target
from webhooks.models import Endpoint, EndpointSecret
from webhooks.rules import signing
from webhooks.rules.policies import EVENT

FOR_COMMANDS = """
SELECT id FROM webhooks_endpoint
 WHERE organization_id = %(organization)s AND receives_commands
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


@dataclass(frozen=True)
class Created:
    """A new endpoint with its signing secret, which is never shown again."""

    endpoint: Endpoint
    secret: str = field(repr=False)


def create(actor: Actor, wanted: NewEndpoint) -> Created:
    """Register an endpoint. The first that receives commands becomes the organization's default.

    Raises UrlNotAllowed when webhooks may not go to its URL, NotPermitted for anyone but an owner.
    """
    actor.require("endpoints:write")
    target = allowed_target(wanted.url)
    receives = wanted.receives_commands
    if receives is None:
        receives = wanted.policy == "command"
    secret = signing.new_secret()
    with transaction.atomic():
        # Two first endpoints at once: the organization's row makes them take turns.
        type(actor.organization).objects.select_for_update(no_key=True).get(
            pk=actor.organization.pk
        )
        endpoint = Endpoint.objects.create(
            organization=actor.organization,
            name=wanted.name,
            url=target.url,
            policy=wanted.policy,
            receives_commands=receives,
            is_default=receives and not _has_default(actor),
            event_types=list(wanted.event_types),
            description=wanted.description,
        )
        EndpointSecret.objects.create(endpoint=endpoint, ciphertext=secrets.encrypt(secret))
        audit.record(actor, "endpoint.create", endpoint, after=facts(endpoint))
    return Created(endpoint, secret)


def _has_default(actor: Actor) -> bool:
    return Endpoint.objects.filter(organization=actor.organization, is_default=True).exists()


def edit(actor: Actor, endpoint_id: UUID, changes: Mapping[str, Any]) -> Endpoint:
    """Change fields of an endpoint, by an owner. Counters of an enabled one start from zero: an edit is
    meant to mend something, and failures from before it say nothing about after.
    """
    actor.require("endpoints:write")
    with transaction.atomic():
        endpoint = locked(actor, endpoint_id)
        before = facts(endpoint)
        Endpoint.objects.filter(pk=endpoint.pk).update(
            **changes, **({"health_since": Now()} if endpoint.enabled else {})
        )
        endpoint.refresh_from_db()
        audit.record(actor, "endpoint.edit", endpoint, before=before, after=facts(endpoint))
    return endpoint


def for_commands(
    organization_id: UUID, named: UUID | None, *, for_share: bool = False
) -> Endpoint | None:
    """The endpoint for a dataset's commands: the one it names, else the organization's default.

    ``for_share`` locks it against being disabled or edited until the transaction ends: what is
    dispatched to it is either before that change or after it.
    """
    sql = FOR_COMMANDS + "FOR SHARE" if for_share else FOR_COMMANDS
    with connection.cursor() as cursor:
        cursor.execute(sql, {"organization": organization_id, "named": named})
        row = cursor.fetchone()
    return Endpoint.objects.get(pk=row[0]) if row else None
