"""``manage.py seed_demo``: an organization to look at, on the first start."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import transaction

from commands import datasets, issuing, lifecycle
from commands.errors import DispatchRefused
from commands.models import Dataset
from demo.behaviours import BEHAVIOURS
from demo.environment import local_url, read_environment
from organizations.models import Organization, User
from organizations.provisioning import Provisioned, provision
from organizations.rules import roles
from webhooks import endpoints
from webhooks.endpoints import Created, NewEndpoint

DOMAIN = "demo.example"
UNARMED = "unarmed"
# What the first look shows: a command for each thing that can happen, with its deadline in seconds.
FIRST_COMMANDS: tuple[tuple[str, str, dict[str, Any], int], ...] = (
    ("accept-and-ack", "set_speed", {"metersPerSecond": 12.5}, 300),
    ("accept-and-ack", "open_valve", {"valve": "A3", "percent": 40}, 300),
    ("accept-and-reject", "take_off", {"altitude": 30}, 300),
    ("accept-and-silence", "return_to_base", {"reason": "low battery"}, 30),
    ("flaky", "set_waypoint", {"latitude": 47.3769, "longitude": 8.5417}, 300),
    ("refuse", "self_test", {"level": "full"}, 300),
    ("moved", "sync_clock", {}, 300),
    ("broken", "set_heading", {"degrees": 270}, 900),
    ("hang", "drop_anchor", {}, 900),
    ("unarmed", "start_engine", {"engine": 2}, 300),
)


class Command(BaseCommand):
    help = "Make the demo organization, once, and keep its passwords and keys in demo.json."

    def handle(self, *args: Any, **options: Any) -> None:
        path = read_environment().demo_file
        if _seeded(path):
            return
        with transaction.atomic():
            facts = seed()
            _write_private(path, facts)
        self.stdout.write("The demo organization is ready.")


def seed() -> dict[str, Any]:
    """Make the organization, an endpoint and an armed dataset for each behaviour, first commands."""
    taken = User.objects.filter(email__endswith=f"@{DOMAIN}").exists()
    made = provision("Demo fleet", domain="" if taken else DOMAIN)
    owner = made.actor(roles.OWNER)
    experiment = datasets.create_experiment(owner, "Field trial")
    created = {name: _endpoint(made, name) for name in BEHAVIOURS}
    named = {
        name: datasets.create_dataset(owner, experiment, name, one.endpoint)
        for name, one in created.items()
    }
    for dataset in named.values():
        datasets.arm(owner, dataset.pk)
    named[UNARMED] = datasets.create_dataset(owner, experiment, UNARMED)
    _first_commands(made, named)
    return _facts(made, created, named)


def _endpoint(made: Provisioned, behaviour: str) -> Created:
    url = f"{local_url(read_environment().receiver_port)}/{behaviour}"
    about = BEHAVIOURS[behaviour].about
    wanted = NewEndpoint(name=behaviour, url=url, policy="command", description=about)
    return endpoints.create(made.actor(roles.OWNER), wanted)


def _first_commands(made: Provisioned, named: dict[str, Dataset]) -> None:
    operator = made.actor(roles.OPERATOR)
    for behaviour, name, parameters, ack_timeout_s in FIRST_COMMANDS:
        token = f"first-{behaviour}-{uuid.uuid4().hex[:8]}"
        issued = issuing.issue(operator, named[behaviour], token, name, parameters)
        try:
            lifecycle.dispatch(operator, issued.command.pk, ack_timeout_s)
        except DispatchRefused:
            # The unarmed dataset is there to show a refusal.
            continue


def _facts(
    made: Provisioned, created: dict[str, Created], named: dict[str, Dataset]
) -> dict[str, Any]:
    first = named["accept-and-ack"]
    return {
        "url": settings.CONSOLE_URL,
        "organizationId": str(made.organization.pk),
        "experimentId": str(first.experiment_id),
        "datasetId": str(first.pk),
        "users": [
            {"role": role, "email": member.membership.user.email, "password": member.password}
            for role, member in made.members.items()
        ],
        "apiKeys": {role: member.api_key for role, member in made.members.items()},
        "endpoints": {
            name: {"id": str(one.endpoint.pk), "url": one.endpoint.url, "secret": one.secret}
            for name, one in created.items()
        },
        "datasets": {name: str(dataset.pk) for name, dataset in named.items()},
    }


def _seeded(path: Path) -> bool:
    """Whether the file is there and its organization still is in this database."""
    try:
        known = json.loads(path.read_text())["organizationId"]
    except (OSError, ValueError, KeyError):
        return False
    return Organization.objects.filter(pk=known).exists()


def _write_private(path: Path, facts: dict[str, Any]) -> None:
    """Written whole or not at all, readable by its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(facts, file, indent=2)
    draft.replace(path)
