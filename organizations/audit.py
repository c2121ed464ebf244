"""Writes the audit trail: one entry an act, in the transaction of the act."""

from __future__ import annotations

from typing import Any

from django.db import models

from organizations.actors import Actor
from organizations.models import AuditEntry


def record(
    actor: Actor,
    act: str,
    target: models.Model,
    *,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> AuditEntry:
    """Keep that ``actor`` did ``act`` to ``target``. Call it inside the act's transaction.

    ``before`` and ``after`` hold plain JSON values of what changed; never a secret.
    """
    return AuditEntry.objects.create(
        organization=actor.organization,
        user=actor.user,
        api_key=actor.api_key,
        via=actor.via,
        address=actor.address,
        act=act,
        target_type=target._meta.model_name or "",
        target_id=str(target.pk),
        before=before or {},
        after=after or {},
    )
