"""The organization that the benchmarks deliver for, made by the console's own services."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any
from uuid import UUID

# Enough that the limit of attempts in flight at one endpoint is not what is measured.
HEALTHY = 16
FLAKY = 16
DEAD = 21

# The rows of one batch: they name their own ids, so that each table is filled by one statement.
BATCHES = """
CREATE TABLE bench_row (
    batch int, n int, organization uuid, issuer uuid, endpoint uuid, dataset uuid,
    command uuid, event uuid, delivery uuid, PRIMARY KEY (batch, n)
) WITH (autovacuum_enabled = off)
"""


@dataclass(frozen=True)
class Target:
    """An endpoint and the dataset whose commands go there."""

    endpoint: UUID
    dataset: UUID


@dataclass(frozen=True)
class Scene:
    """Who delivers where. ``database`` is the template of the arenas."""

    database: str
    organization: UUID
    issuer: UUID
    api_key: str
    healthy: list[Target]
    flaky: list[Target]
    dead: list[Target]
    flooding: list[Target]

    @classmethod
    def prepare(cls, receiver: str) -> Scene:
        """Migrate the database that the environment names, and fill it."""
        import django
        from django.core.management import call_command
        from django.db import connection

        django.setup()
        call_command("migrate", interactive=False, verbosity=0)
        call_command("createcachetable", verbosity=0)
        with connection.cursor() as cursor:
            cursor.execute(BATCHES)
        scene = _provisioned(connection.settings_dict["NAME"], receiver)
        connection.close()  # a template has no visitors
        return scene


def _provisioned(database: str, receiver: str) -> Scene:
    from commands import datasets
    from organizations.provisioning import provision
    from organizations.rules import roles

    made = provision("Benchmarks")
    owner = made.actor(roles.OWNER)
    experiment = datasets.create_experiment(owner, "Benchmarks")
    numbers = itertools.count(1)

    def targets(count: int, path: str) -> list[Target]:
        return [
            _target(owner, experiment, f"{receiver}{path}", next(numbers)) for _ in range(count)
        ]

    operator = made.members[roles.OPERATOR]
    return Scene(
        database=database,
        organization=made.organization.pk,
        issuer=operator.membership.user_id,
        api_key=operator.api_key,
        healthy=targets(HEALTHY, "/ok"),
        flaky=targets(FLAKY, "/flaky"),
        dead=targets(DEAD, "/hang"),
        flooding=targets(1, "/flood"),
    )


def _target(owner: Any, experiment: Any, url: str, number: int) -> Target:
    from commands import datasets
    from webhooks import endpoints

    wanted = endpoints.NewEndpoint(name=f"Receiver {number}", url=url, policy="command")
    endpoint = endpoints.create(owner, wanted).endpoint
    dataset = datasets.create_dataset(owner, experiment, f"Dataset {number}", endpoint)
    datasets.arm(owner, dataset.pk)
    return Target(endpoint.pk, dataset.pk)
