"""``manage.py bootstrap``: an organization that is ready to issue commands."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from commands import datasets
from organizations.provisioning import Provisioned, provision
from organizations.rules import roles


class Command(BaseCommand):
    help = (
        "Make a new organization with an owner, an operator and a viewer, an API key for each, an"
        " experiment and an armed dataset. Passwords and keys are printed here and nowhere else."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", default="New organization", help="The organization's name.")
        parser.add_argument("--json", action="store_true", help="Print one JSON object.")

    def handle(self, *, name: str, json: bool, **options: Any) -> None:
        facts = bootstrap(name)
        self.stdout.write(_as_json(facts) if json else _as_text(facts))


def bootstrap(name: str) -> dict[str, Any]:
    """Make it all and return what a client needs, secrets included."""
    made = provision(name)
    owner = made.actor(roles.OWNER)
    experiment = datasets.create_experiment(owner, "First experiment")
    dataset = datasets.create_dataset(owner, experiment, "First dataset")
    datasets.arm(owner, dataset.pk)
    return {
        "organizationId": str(made.organization.pk),
        "experimentId": str(experiment.pk),
        "datasetId": str(dataset.pk),
        "users": _users(made),
        "apiKeys": {role: member.api_key for role, member in made.members.items()},
    }


def _users(made: Provisioned) -> list[dict[str, str]]:
    return [
        {"role": role, "email": member.membership.user.email, "password": member.password}
        for role, member in made.members.items()
    ]


def _as_json(facts: dict[str, Any]) -> str:
    return json.dumps(facts)


def _as_text(facts: dict[str, Any]) -> str:
    lines = [
        f"organization {facts['organizationId']}",
        f"experiment   {facts['experimentId']}",
        f"dataset      {facts['datasetId']} (armed)",
        *(f"{u['role']:<12} {u['email']}  {u['password']}" for u in facts["users"]),
        *(f"{role + ' key':<12} {key}" for role, key in facts["apiKeys"].items()),
    ]
    return "\n".join(lines)
