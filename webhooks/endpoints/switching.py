"""Endpoints disabled, by hand or by their rule, and enabled again."""

from __future__ import annotations

from uuid import UUID

from django.db import connection, transaction
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from organizations import audit
from organizations.actors import Actor
from webhooks.endpoints.rows import facts, locked
from webhooks.models import Delivery, Endpoint
from webhooks.rules.verdicts import FailureReason
from webhooks.signals import Settlement, deliveries_settled

# Locked in the order of their ids, like a batch of results: two of these never wait for each other.
FAIL_WAITING = """
WITH waiting AS (
    SELECT id FROM webhooks_delivery
     WHERE endpoint_id = %s AND next_attempt_at IS NOT NULL ORDER BY id FOR NO KEY UPDATE)
UPDATE webhooks_delivery d
   SET state = 'failed', next_attempt_at = NULL, failure_reason = %s,
       settled_at = statement_timestamp()
  FROM waiting WHERE d.id = waiting.id
RETURNING d.id, d.command_id, d.state, d.failure_reason, d.settled_at
"""


def disable(actor: Actor, endpoint_id: UUID, reason: str) -> Endpoint:
    """Disable by hand: no new attempt starts, what waits ends failed, what is on the wire finishes."""
    actor.require("endpoints:write")
    with transaction.atomic():
        endpoint = locked(actor, endpoint_id)
        if endpoint.enabled:
            before = facts(endpoint)
            settled = disable_locked(endpoint.pk, reason or "Disabled by an owner.")
            endpoint.refresh_from_db()
            audit.record(
                actor,
                "endpoint.disable",
                endpoint,
                before=before,
                after=facts(endpoint),
            )
            deliveries_settled.send(sender=Delivery, settlements=settled)
    return endpoint


def enable(actor: Actor, endpoint_id: UUID) -> Endpoint:
    """Enable again, by an owner, by hand: counters start from zero and nothing is replayed."""
    actor.require("endpoints:enable")
    with transaction.atomic():
        endpoint = locked(actor, endpoint_id)
        if not endpoint.enabled:
            before = facts(endpoint)
            Endpoint.objects.filter(pk=endpoint.pk).update(
                enabled=True, disabled_at=None, disabled_reason="", health_since=Now()
            )
            endpoint.refresh_from_db()
            audit.record(
                actor,
                "endpoint.enable",
                endpoint,
                before=before,
                after=facts(endpoint),
            )
    return endpoint


def disable_locked(endpoint_id: UUID, reason: str) -> list[Settlement]:
    """Disable an endpoint whose row the transaction has locked; the deliveries that this ended.

    The caller sends them on with ``deliveries_settled``, when it has no row left to lock.
    """
    Endpoint.objects.filter(pk=endpoint_id).update(
        enabled=False, disabled_at=Now(), disabled_reason=reason[:200]
    )
    return fail_waiting(endpoint_id)


def fail_waiting(endpoint_id: UUID) -> list[Settlement]:
    """End every delivery that waits at a disabled endpoint."""
    with connection.cursor() as cursor:
        cursor.execute(FAIL_WAITING, [endpoint_id, FailureReason.ENDPOINT_DISABLED])
        return [Settlement(*row) for row in cursor.fetchall()]


def fail_stranded() -> list[Settlement]:
    """End deliveries that wait at a disabled endpoint all the same. None should: this is the net
    under every race, so that nothing waits for ever where no attempt will start.
    """
    waiting = Delivery.objects.filter(endpoint=OuterRef("pk"), next_attempt_at__isnull=False)
    # Locked, so that what is dispatched after somebody enables one of them is not taken along.
    stranded = Endpoint.objects.select_for_update(no_key=True).filter(
        Exists(waiting), enabled=False
    )
    return [one for endpoint in stranded.order_by("pk") for one in fail_waiting(endpoint.pk)]
