"""API keys: made, shown once, recognised by digest, revoked.

A key reads ``cck_<prefix>_<secret>``. The secret has 256 random bits, so a plain SHA-256 is enough to
store: there is nothing to guess that a slow hash would have to slow down.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from organizations import audit
from organizations.actors import Actor
from organizations.clock import database_now, rfc3339
from organizations.models import ApiKey, Membership, Organization, User
from organizations.rules.roles import scopes_for

# "Last used" is written at most this often: every request would otherwise write one hot row.
LAST_USED_RESOLUTION = timedelta(minutes=1)
KEY_SHAPE = re.compile(r"cck_(?P<prefix>[0-9a-f]{8})_[A-Za-z0-9_-]{43}")


class InvalidKey(Exception):
    """The API key is unknown, expired or revoked."""


class ScopesRefused(ValueError):
    """A key may not hold more than its person may do."""


def create_key(
    organization: Organization,
    user: User,
    name: str,
    scopes: Iterable[str] | None = None,
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """A new key and its text, which nothing will show again. All scopes of the role by default."""
    membership = Membership.objects.get(organization=organization, user=user)
    allowed = scopes_for(membership.role)
    granted = allowed if scopes is None else sorted(set(scopes))
    if not set(granted) <= set(allowed):
        raise ScopesRefused(f"A key of a {membership.role} may hold only {', '.join(allowed)}.")
    prefix = secrets.token_hex(4)
    text = f"cck_{prefix}_{secrets.token_urlsafe(32)}"
    key = ApiKey.objects.create(
        organization=organization,
        user=user,
        name=name,
        prefix=prefix,
        digest=_digest(text),
        scopes=granted,
        expires_at=expires_at,
    )
    return key, text


def make(
    actor: Actor,
    membership_id: int,
    name: str,
    scopes: Iterable[str],
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """A new key for a member, made by an owner, and its text, which nothing will show again.

    Raises Membership.DoesNotExist for somebody who is none, ScopesRefused.
    """
    actor.require("members:write")
    with transaction.atomic():
        # Whoever removes the member waits, and revokes this key too.
        members = Membership.objects.select_for_update(of=("self",)).select_related("user")
        member = members.get(pk=membership_id, organization=actor.organization)
        key, text = create_key(actor.organization, member.user, name, scopes, expires_at)
        audit.record(actor, "api_key.create", key, after=facts(key))
    return key, text


def facts(key: ApiKey) -> dict[str, Any]:
    """What the audit trail keeps of a new key."""
    return {
        "name": key.name,
        "prefix": key.prefix,
        "user": key.user.email,
        "scopes": key.scopes,
        "expiresAt": rfc3339(key.expires_at) if key.expires_at else None,
    }


def revoke(actor: Actor, key: ApiKey) -> ApiKey:
    """Refuse the key from now on and for good. Revoking it again changes nothing."""
    actor.require("members:write")
    with transaction.atomic():
        key = ApiKey.objects.select_for_update().get(pk=key.pk, organization=actor.organization)
        if key.revoked_at is None:
            key.revoked_at = database_now()
            key.save(update_fields=["revoked_at"])
            audit.record(
                actor,
                "api_key.revoke",
                key,
                before={"revokedAt": None},
                after={"revokedAt": rfc3339(key.revoked_at)},
            )
    return key


def authenticate(text: str, address: str | None) -> Actor:
    """The actor behind a key's text. Raises InvalidKey, the same for every kind of wrong."""
    shape = KEY_SHAPE.fullmatch(text)
    if shape is None:
        raise InvalidKey
    key = (
        ApiKey.objects.select_related("organization", "user").filter(prefix=shape["prefix"]).first()
    )
    if key is None or not hmac.compare_digest(key.digest, _digest(text)):
        raise InvalidKey
    now = timezone.now()
    membership = Membership.objects.filter(organization=key.organization, user=key.user).first()
    if not key.usable(now) or not key.user.is_active or membership is None:
        raise InvalidKey
    _note_use(key, now)
    return Actor.with_key(key, membership, address)


def _note_use(key: ApiKey, now: datetime) -> None:
    if key.last_used_at is None or now - key.last_used_at > LAST_USED_RESOLUTION:
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
