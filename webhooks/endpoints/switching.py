"""Endpoints disabled, by hand or by their rule, enabled again, and archived."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models.functions import Coalesce, Now

from organizations import audit, prepared
from organizations.actors import Actor
from organizations.clock import rfc3339
from webhooks import notices, publishing
from webhooks.endpoints.refusals import Refused
from webhooks.endpoints.rows import counters_from_zero, facts, locked
from webhooks.models import Delivery, Endpoint
from webhooks.rules import event_types
from webhooks.rules.verdicts import FailureReason
from webhooks.signals import Settlement, deliveries_settled

# Pings go to a disabled endpoint too, and to an archived one no more. Locked in the order of their ids,
# like a batch of results: two of these never wait for each other.
#
# At most so many at once: each may end a command with its timeline, notice and events, and the results of
# other endpoints wait meanwhile. No attempt starts at a disabled endpoint, so the rest can wait for the
# sweep, a second later, or for whoever enables the endpoint again.
STEP = 500
FAIL_WAITING = """
WITH waiting AS (
    SELECT d.id FROM webhooks_delivery d JOIN webhooks_endpoint e ON e.id = d.endpoint_id
     WHERE d.endpoint_id = %s AND d.next_attempt_at IS NOT NULL
       AND (NOT d.is_ping OR e.archived_at IS NOT NULL)
     ORDER BY d.id LIMIT %s FOR NO KEY UPDATE OF d)
UPDATE webhooks_delivery d
   SET state = 'failed', next_attempt_at = NULL, failure_reason = %s,
       settled_at = statement_timestamp()
  FROM waiting WHERE d.id = waiting.id
RETURNING d.id, d.command_id, d.state, d.failure_reason, d.settled_at
"""

# Locked, so that what is dispatched after somebody enables the endpoint is not taken along.
STRANDED = """
SELECT e.id FROM webhooks_endpoint e
 WHERE NOT e.enabled AND EXISTS (
       SELECT FROM webhooks_delivery d WHERE d.endpoint_id = e.id AND d.next_attempt_at IS NOT NULL
          AND (NOT d.is_ping OR e.archived_at IS NOT NULL))
 ORDER BY e.id LIMIT 1 FOR NO KEY UPDATE OF e
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
            audit.record(actor, "endpoint.disable", endpoint, before=before, after=facts(endpoint))
            deliveries_settled.send(sender=Delivery, settlements=settled)
    return endpoint


def enable(actor: Actor, endpoint_id: UUID) -> Endpoint:
    """Enable again, by an owner, by hand: counters start from zero and nothing is replayed.

    Raises Refused for an archived endpoint.
    """
    actor.require("endpoints:enable")
    while True:
        with transaction.atomic():
            endpoint = locked(actor, endpoint_id)
            if endpoint.archived_at:
                raise Refused("endpoint_archived")
            if endpoint.enabled:
                return endpoint
            # What still waits from before must not fire now. A large rest ends in steps first.
            ended = fail_waiting(endpoint.pk)
            if len(ended) < STEP:
                _switch_on(actor, endpoint)
            deliveries_settled.send(sender=Delivery, settlements=ended)


def _switch_on(actor: Actor, endpoint: Endpoint) -> None:
    before = facts(endpoint)
    Endpoint.objects.filter(pk=endpoint.pk).update(
        enabled=True, disabled_at=None, disabled_reason="", **counters_from_zero()
    )
    endpoint.refresh_from_db()
    audit.record(actor, "endpoint.enable", endpoint, before=before, after=facts(endpoint))


def archive(actor: Actor, endpoint_id: UUID) -> Endpoint:
    """Use an endpoint no more, for good: as if disabled, and in no list. Its history stays.

    The default leaves no other in its place: where commands go, a person decides.
    """
    actor.require("endpoints:write")
    with transaction.atomic():
        endpoint = locked(actor, endpoint_id)
        if endpoint.archived_at is None:
            before = facts(endpoint)
            end = disable_locked if endpoint.enabled else _switch_off
            settled = end(endpoint.pk, "Archived by an owner.", archived_at=Now(), is_default=False)
            endpoint.refresh_from_db()
            audit.record(actor, "endpoint.archive", endpoint, before=before, after=facts(endpoint))
            deliveries_settled.send(sender=Delivery, settlements=settled)
    return endpoint


def disable_locked(endpoint_id: UUID, reason: str, **also: Any) -> list[Settlement]:
    """Disable an enabled endpoint whose row the transaction has locked, and tell of it once; the
    deliveries that this ended.

    The caller sends them on with ``deliveries_settled``, when it has no row left to lock.
    """
    waiting = Delivery.objects.filter(
        endpoint=endpoint_id, next_attempt_at__isnull=False, is_ping=False
    ).count()
    settled = _switch_off(endpoint_id, reason, **also)
    notices.tell_disabled(endpoint_id, ended=waiting)
    _announce(Endpoint.objects.get(pk=endpoint_id))
    return settled


def _switch_off(endpoint_id: UUID, reason: str, **also: Any) -> list[Settlement]:
    Endpoint.objects.filter(pk=endpoint_id).update(
        enabled=False,
        disabled_at=Coalesce("disabled_at", Now()),
        disabled_reason=reason[:200],
        **also,
    )
    return fail_waiting(endpoint_id)


def _announce(endpoint: Endpoint) -> None:
    """Tell the other endpoints that subscribe to it."""
    assert endpoint.disabled_at
    told = {
        "id": str(endpoint.pk),
        "name": endpoint.name,
        "policy": endpoint.schedule.name,
        "disabledAt": rfc3339(endpoint.disabled_at),
        "disabledReason": endpoint.disabled_reason,
        "archived": endpoint.archived_at is not None,
    }
    publishing.publish(endpoint.organization_id, event_types.ENDPOINT_DISABLED, {"endpoint": told})


def fail_waiting(endpoint_id: UUID) -> list[Settlement]:
    """End deliveries that wait at a disabled endpoint and that no attempt will follow, up to STEP."""
    with connection.cursor() as cursor:
        cursor.execute(FAIL_WAITING, [endpoint_id, STEP, FailureReason.ENDPOINT_DISABLED])
        return [Settlement(*row) for row in cursor.fetchall()]


def fail_stranded() -> list[Settlement]:
    """End deliveries that wait at some disabled endpoint, up to STEP: the rest of a backlog, or an event
    published in the moment in which it was disabled. It is also the net under every other race, so that
    nothing waits for ever where no attempt will start.
    """
    stranded = prepared.execute(STRANDED)
    return fail_waiting(stranded[0][0]) if stranded else []
