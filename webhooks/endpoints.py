"""Endpoints from the outside: registered, chosen for commands, disabled, enabled, and their health."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from organizations import audit
from organizations.actors import Actor
from webhooks import secrets
from webhooks.engine.resolver import AddressBlocked, NameFailed, NameTimedOut, Resolver
from webhooks.models import Delivery, Endpoint, EndpointSecret
from webhooks.rules import health, signing
from webhooks.rules.addresses import AddressPolicy, ParsedTarget, UrlNotAllowed, check_url
from webhooks.rules.health import Health
from webhooks.rules.policies import EVENT, POLICIES, RuleKind
from webhooks.rules.verdicts import FailureReason
from webhooks.signals import Settlement, deliveries_settled

# Outcomes that the health strip shows; no rule looks further back than it has to count.
STRIP = 20
# How long a registration waits for a name to resolve, seconds.
RESOLVE_S = 2.0

# What a rule counts, newest first: attempts, or the attempts that ended a delivery. Lost attempts and
# pings say nothing about the receiver.
RECENT = """
SELECT wanted.id, recent.delivered
  FROM unnest(%(endpoints)s::uuid[]) AS wanted(id)
  JOIN webhooks_endpoint e ON e.id = wanted.id
 CROSS JOIN LATERAL (
    SELECT a.verdict = 'delivered' AS delivered
      FROM webhooks_attempt a JOIN webhooks_delivery d ON d.id = a.delivery_id
     WHERE a.endpoint_id = e.id AND a.finished_at > e.health_since AND a.verdict <> 'lost'
       AND NOT d.is_ping
       AND (NOT e.policy = ANY(%(by_delivery)s)
            OR a.verdict = 'delivered' OR (d.state = 'failed' AND a.number = d.attempts))
     ORDER BY a.id DESC LIMIT %(strip)s) recent
"""


FOR_COMMANDS = """
SELECT id FROM webhooks_endpoint
 WHERE organization_id = %(organization)s AND receives_commands
   AND CASE WHEN %(named)s::uuid IS NULL THEN is_default ELSE id = %(named)s END
"""

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

_resolver = Resolver()


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


def address_policy() -> AddressPolicy:
    """Which addresses the settings allow."""
    return AddressPolicy(
        allow_http=settings.ENDPOINT_ALLOW_HTTP,
        allowed_networks=settings.ENDPOINT_ALLOWED_NETWORKS,
    )


def allowed_target(url: str) -> ParsedTarget:
    """The URL, taken apart and normalised. Raises UrlNotAllowed when webhooks may not go there.

    A name is resolved, and each of its addresses must be allowed. One that does not resolve (yet) is
    taken: every attempt looks again.
    """
    target = check_url(url, address_policy())
    try:
        _resolver.allowed_addresses(target, address_policy(), RESOLVE_S)
    except AddressBlocked as blocked:
        raise UrlNotAllowed(f"{target.host} is not a public address: {blocked}") from None
    except (NameFailed, NameTimedOut):
        pass
    return target


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
        audit.record(actor, "endpoint.create", endpoint, after=_facts(endpoint))
    return Created(endpoint, secret)


def _has_default(actor: Actor) -> bool:
    return Endpoint.objects.filter(organization=actor.organization, is_default=True).exists()


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


def disable(actor: Actor, endpoint_id: UUID, reason: str) -> Endpoint:
    """Disable by hand: no new attempt starts, what waits ends failed, what is on the wire finishes."""
    actor.require("endpoints:write")
    with transaction.atomic():
        endpoint = _locked(actor, endpoint_id)
        if endpoint.enabled:
            before = _facts(endpoint)
            settled = disable_locked(endpoint.pk, reason or "Disabled by an owner.")
            endpoint.refresh_from_db()
            audit.record(
                actor,
                "endpoint.disable",
                endpoint,
                before=before,
                after=_facts(endpoint),
            )
            deliveries_settled.send(sender=Delivery, settlements=settled)
    return endpoint


def enable(actor: Actor, endpoint_id: UUID) -> Endpoint:
    """Enable again, by an owner, by hand: counters start from zero and nothing is replayed."""
    actor.require("endpoints:enable")
    with transaction.atomic():
        endpoint = _locked(actor, endpoint_id)
        if not endpoint.enabled:
            before = _facts(endpoint)
            Endpoint.objects.filter(pk=endpoint.pk).update(
                enabled=True, disabled_at=None, disabled_reason="", health_since=Now()
            )
            endpoint.refresh_from_db()
            audit.record(
                actor,
                "endpoint.enable",
                endpoint,
                before=before,
                after=_facts(endpoint),
            )
    return endpoint


def edit(actor: Actor, endpoint_id: UUID, changes: Mapping[str, Any]) -> Endpoint:
    """Change fields of an endpoint, by an owner. Counters of an enabled one start from zero: an edit is
    meant to mend something, and failures from before it say nothing about after.
    """
    actor.require("endpoints:write")
    with transaction.atomic():
        endpoint = _locked(actor, endpoint_id)
        before = _facts(endpoint)
        Endpoint.objects.filter(pk=endpoint.pk).update(
            **changes, **({"health_since": Now()} if endpoint.enabled else {})
        )
        endpoint.refresh_from_db()
        audit.record(actor, "endpoint.edit", endpoint, before=before, after=_facts(endpoint))
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


def health_of(endpoints: Iterable[Endpoint]) -> dict[UUID, Health]:
    """The health of each endpoint under the rule of its policy, in one query."""
    rules = {endpoint.pk: endpoint.schedule.disable_rule for endpoint in endpoints}
    if not rules:
        return {}
    outcomes: dict[UUID, list[bool]] = {pk: [] for pk in rules}
    by_delivery = [
        name
        for name, policy in POLICIES.items()
        if policy.disable_rule.kind == RuleKind.DELIVERIES_IN_A_ROW
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            RECENT,
            {"endpoints": list(rules), "by_delivery": by_delivery, "strip": STRIP},
        )
        for endpoint_id, delivered in cursor.fetchall():
            outcomes[endpoint_id].append(delivered)
    return {pk: health.judge(rule, outcomes[pk]) for pk, rule in rules.items()}


def _locked(actor: Actor, endpoint_id: UUID) -> Endpoint:
    """The endpoint, locked no harder than needed: a claim that holds deliveries of it must still be
    able to refer to it when it commits, or the two would wait for each other.
    """
    return Endpoint.objects.select_for_update(no_key=True).get(
        pk=endpoint_id, organization=actor.organization
    )


def _facts(endpoint: Endpoint) -> dict[str, Any]:
    """What the audit trail keeps of an endpoint."""
    return {
        "name": endpoint.name,
        "url": endpoint.url,
        "policy": endpoint.policy,
        "receivesCommands": endpoint.receives_commands,
        "eventTypes": endpoint.event_types,
        "description": endpoint.description,
        "maxInFlight": endpoint.max_in_flight,
        "enabled": endpoint.enabled,
        "disabledReason": endpoint.disabled_reason,
    }
