"""Makes organizations with their first people and keys."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from django.db import transaction

from organizations import keys
from organizations.actors import Actor
from organizations.models import Membership, Organization, User
from organizations.rules import roles


@dataclass(frozen=True)
class NewMember:
    """A new person with what was made for them; neither the password nor the key is shown again."""

    membership: Membership
    password: str = field(repr=False)
    api_key: str = field(repr=False)


@dataclass(frozen=True)
class Provisioned:
    """A new organization and one new person for each role."""

    organization: Organization
    members: dict[str, NewMember]

    def actor(self, role: str) -> Actor:
        """The member with that role, acting from the command line."""
        return Actor.of(self.members[role].membership, via="cli")


def provision(name: str, domain: str = "") -> Provisioned:
    """A new organization with an owner, an operator and a viewer, a random password and a key each.

    Their addresses are ``owner@domain`` and so on; without a domain they are made up and unique.
    """
    with transaction.atomic():
        organization = Organization.objects.create(name=name)
        members = {role: _new_member(organization, role, domain) for role in roles.ROLES}
    return Provisioned(organization, members)


def _new_member(organization: Organization, role: str, domain: str) -> NewMember:
    password = secrets.token_urlsafe(12)
    made_up = f"{role}-{organization.pk.hex[-8:]}@example.com"
    address = f"{role}@{domain}" if domain else made_up
    # An owner gets into the admin too, where every model of the organization can be read.
    user = User.objects.create_user(address, password, is_staff=role == roles.OWNER)
    membership = Membership.objects.create(organization=organization, user=user, role=role)
    _, text = keys.create_key(organization, user, name=f"first key of the {role}")
    return NewMember(membership, password, text)
