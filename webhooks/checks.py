"""Settings that cannot work are refused at the start, not found out by a command that never arrives."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence
from typing import Any

from cryptography.fernet import Fernet
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import DatabaseError, transaction

from webhooks.models import Endpoint
from webhooks.policies import POLICIES

# After its deadline an attempt is recorded; a worker that needs longer than this for it is in trouble.
RECORDING_MARGIN_S = 5
# A worker has one connection for its tasks, its pump, its recorder and its mails. Beside the workers there
# are the web server's threads, the broker, the watch and a person with psql.
CONNECTIONS_A_WORKER = 4
OTHER_CONNECTIONS = 30


@register
def check_delivery_settings(**_: Any) -> list[CheckMessage]:
    """Every way in which the delivery settings contradict each other."""
    return [*_time_limits(), *_authorities(), *_connections(), *_encryption_keys()]


def _time_limits() -> Iterator[CheckMessage]:
    deadline, lease = settings.ATTEMPT_DEADLINE_S, settings.LEASE_S
    timeout, retry = settings.Q_CLUSTER["timeout"], settings.Q_CLUSTER["retry"]
    if not deadline + RECORDING_MARGIN_S <= timeout < lease:
        yield Error(
            f"An attempt may take {deadline} s, a task {timeout} s and a lease lasts {lease} s: each must"
            " be longer than the one before.",
            hint="Keep ATTEMPT_DEADLINE_S + 5 <= Q_CLUSTER['timeout'] < LEASE_S.",
            id="webhooks.E001",
        )
    if retry <= timeout:
        yield Error(
            f"django-q2 would hand out a task again after {retry} s while it may run {timeout} s.",
            hint="Set Q_CLUSTER['retry'] above Q_CLUSTER['timeout'].",
            id="webhooks.E002",
        )


def _authorities() -> Iterator[CheckMessage]:
    bundle = settings.ENDPOINT_CA_BUNDLE
    try:
        ssl.create_default_context(cafile=bundle or None)
    except OSError as error:
        yield Error(
            f"ENDPOINT_CA_BUNDLE ({bundle}) cannot be used: {error.strerror or error}.",
            hint="It must be a readable PEM file with the authorities to trust.",
            id="webhooks.E004",
        )


def _connections() -> Iterator[CheckMessage]:
    needed = settings.DELIVERY_WORKERS * CONNECTIONS_A_WORKER + OTHER_CONNECTIONS
    if settings.EMBEDDED_DATABASE and needed > settings.EMBEDDED_CONNECTIONS:
        yield Error(
            f"{settings.DELIVERY_WORKERS} workers need up to {needed} database connections; the embedded"
            f" PostgreSQL has {settings.EMBEDDED_CONNECTIONS}.",
            hint="Lower DELIVERY_WORKERS, or set DATABASE_URL to a server that takes more.",
            id="webhooks.E005",
        )


def _encryption_keys() -> Iterator[CheckMessage]:
    for position, key in enumerate(settings.SECRETS_ENCRYPTION_KEYS, start=1):
        try:
            Fernet(key)
        except ValueError:
            yield Error(
                f"Key {position} of SECRETS_ENCRYPTION_KEYS is not a Fernet key.",
                hint="It must be 32 bytes in URL-safe base64; Fernet.generate_key() makes one.",
                id="webhooks.E003",
            )


@register(Tags.database)
def check_policies_in_use(databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """A policy that was taken out of the settings while endpoints have it: nothing breaks, but somebody
    should know. Looked at with ``migrate`` and ``check --database default``.
    """
    if not databases:
        return []
    try:
        with transaction.atomic():
            used = Endpoint.objects.filter(archived_at=None).exclude(policy__in=POLICIES)
            gone = sorted(set(used.values_list("policy", flat=True)))
    except DatabaseError:  # the first migrations are yet to run
        return []
    return [
        Warning(
            f"Endpoints have the policy {name}, which DELIVERY_POLICIES does not define any more.",
            hint="New deliveries follow `command` where the endpoint receives commands, else `event`; "
            "deliveries under way keep the policy they started with. Define it again, or edit the "
            "endpoints.",
            id="webhooks.W001",
        )
        for name in gone
    ]
