"""New organizations with their first people, and the command that makes one ready for use."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction

from commands.models import Dataset, Experiment
from organizations import keys
from organizations.models import AuditEntry, Membership, Organization, User
from organizations.provisioning import provision
from organizations.rules.roles import scopes_for

pytestmark = pytest.mark.django_db


def test_an_organization_starts_with_one_person_of_each_role() -> None:
    made = provision("Fleet")

    members = Membership.objects.filter(organization=made.organization)
    assert made.organization.name == "Fleet"
    assert {member.role for member in members} == {"owner", "operator", "viewer"}
    assert len({member.user_id for member in members}) == 3


def test_the_people_can_log_in_and_their_keys_work() -> None:
    made = provision("Fleet")

    for role, member in made.members.items():
        assert member.membership.user.check_password(member.password)
        actor = keys.authenticate(member.api_key, None)
        assert (actor.role, actor.organization) == (role, made.organization)
        assert sorted(actor.permissions) == scopes_for(role)


def test_two_organizations_share_nothing() -> None:
    one, other = provision("Fleet"), provision("Fleet")

    assert one.organization != other.organization
    emails = [m.membership.user.email for made in (one, other) for m in made.members.values()]
    secrets = [m.password for made in (one, other) for m in made.members.values()]
    assert len(set(emails)) == 6
    assert len(set(secrets)) == 6


def test_two_addresses_never_differ_by_case_alone() -> None:
    User.objects.create_user("person@example.com", "secret")

    with pytest.raises(IntegrityError, match="user_email_any_case"), transaction.atomic():
        User.objects.create_user("Person@example.com", "secret")


def test_a_person_has_one_role_in_an_organization() -> None:
    made = provision("Fleet")
    user = made.members["owner"].membership.user

    with pytest.raises(IntegrityError, match="one_role_an_organization"), transaction.atomic():
        Membership.objects.create(organization=made.organization, user=user, role="viewer")


def bootstrapped(**options: Any) -> dict[str, Any]:
    output = io.StringIO()
    call_command("bootstrap", json=True, stdout=output, **options)
    facts: dict[str, Any] = json.loads(output.getvalue())
    return facts


def test_bootstrap_prints_all_that_a_client_needs() -> None:
    facts = bootstrapped(name="Fleet")

    assert facts.keys() == {"organizationId", "experimentId", "datasetId", "users", "apiKeys"}
    assert [user["role"] for user in facts["users"]] == ["owner", "operator", "viewer"]
    assert all(user.keys() == {"role", "email", "password"} for user in facts["users"])
    assert facts["apiKeys"].keys() == {"owner", "operator", "viewer"}


def test_what_bootstrap_made_is_ready_for_commands() -> None:
    facts = bootstrapped(name="Fleet")

    organization = Organization.objects.get(pk=facts["organizationId"])
    dataset = Dataset.objects.get(pk=facts["datasetId"])
    assert organization.name == "Fleet"
    assert dataset.armed
    assert dataset.organization == organization
    assert dataset.experiment == Experiment.objects.get(pk=facts["experimentId"])
    assert keys.authenticate(facts["apiKeys"]["operator"], None).organization == organization
    assert AuditEntry.objects.filter(organization=organization, via="cli").exists()


def test_each_bootstrap_makes_another_organization() -> None:
    assert bootstrapped()["organizationId"] != bootstrapped()["organizationId"]


def test_bootstrap_prints_text_for_people() -> None:
    output = io.StringIO()

    call_command("bootstrap", stdout=output)

    assert "armed" in output.getvalue()
    assert "operator key cck_" in output.getvalue()
