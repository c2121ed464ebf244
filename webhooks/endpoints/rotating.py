"""A new signing secret, while the old one goes on signing for as long as the receiver needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from organizations import audit
from organizations.actors import Actor
from organizations.clock import database_now, rfc3339
from webhooks import secrets
from webhooks.endpoints.refusals import Refused
from webhooks.endpoints.rows import locked
from webhooks.engine import claims
from webhooks.models import Endpoint, EndpointSecret
from webhooks.rules import signing

# A day: whoever runs the receiver may be asleep when an owner rotates.
OVERLAP_HOURS: Final = 24
MAX_OVERLAP_HOURS: Final = 7 * 24
# Each secret that is still valid adds 48 bytes to a header of every delivery.
MAX_SECRETS: Final = 5


@dataclass(frozen=True)
class Rotated:
    """An endpoint with its new secret, which is never shown again, and when the one before it ends."""

    endpoint: Endpoint
    secret: str = field(repr=False)
    previous_expires_at: datetime


def rotate_secret(actor: Actor, endpoint_id: UUID, overlap_hours: int = OVERLAP_HOURS) -> Rotated:
    """Sign with a new secret from the next attempt on, and with the old one too until it expires.

    Without an overlap every secret so far is dropped at once: what an owner does whose secret leaked.
    Raises Refused for an archived endpoint, or when too many secrets would be valid.
    """
    actor.require("endpoints:write")
    secret = signing.new_secret()
    with transaction.atomic():
        endpoint = locked(actor, endpoint_id)
        if endpoint.archived_at:
            raise Refused("endpoint_archived")
        # So that every attempt which begins after this is signed with the new one.
        claims.hold()
        expires_at = database_now() + timedelta(hours=overlap_hours)
        _expire(endpoint, expires_at, all_of_them=overlap_hours == 0)
        EndpointSecret.objects.create(endpoint=endpoint, ciphertext=secrets.encrypt(secret))
        told = {"overlapHours": overlap_hours, "previousSecretExpiresAt": rfc3339(expires_at)}
        audit.record(actor, "endpoint.rotate_secret", endpoint, after=told)
    return Rotated(endpoint, secret, expires_at)


def _expire(endpoint: Endpoint, at: datetime, *, all_of_them: bool) -> None:
    """Give the current secret its end, and one to those in their overlap only if all are to go."""
    current = Q(expires_at__isnull=True)
    valid = EndpointSecret.objects.filter(current | Q(expires_at__gt=Now()), endpoint=endpoint)
    if not all_of_them and valid.count() >= MAX_SECRETS:
        raise Refused("too_many_secrets")
    (valid if all_of_them else valid.filter(current)).update(expires_at=at)
