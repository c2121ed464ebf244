"""Who acts, on whose behalf, and from where: handed to every service that changes something."""

from __future__ import annotations

from dataclasses import dataclass, field

from organizations.models import ApiKey, Membership, Organization, User
from organizations.rules.roles import permissions_of


class NotPermitted(Exception):
    """Your role does not allow this."""

    def __init__(self, permission: str) -> None:
        self.permission = permission
        super().__init__(f"This needs the permission {permission}, which you do not have.")


@dataclass(frozen=True)
class Actor:
    """A person at work in one organization, in the console or through a key.

    ``permissions`` are those of the role, narrowed to the key's scopes where a key is used.
    """

    organization: Organization
    user: User
    role: str
    via: str
    permissions: frozenset[str] = field(repr=False)
    api_key: ApiKey | None = None
    address: str | None = None

    @classmethod
    def of(cls, membership: Membership, via: str, address: str | None = None) -> Actor:
        """A member acting in person."""
        return cls(
            organization=membership.organization,
            user=membership.user,
            role=membership.role,
            via=via,
            permissions=permissions_of(membership.role),
            address=address,
        )

    @classmethod
    def with_key(cls, key: ApiKey, membership: Membership, address: str | None) -> Actor:
        """A member's API key: never more than the member's role allows today."""
        return cls(
            organization=key.organization,
            user=key.user,
            role=membership.role,
            via="api",
            permissions=permissions_of(membership.role) & frozenset(key.scopes),
            api_key=key,
            address=address,
        )

    def may(self, permission: str) -> bool:
        return permission in self.permissions

    def require(self, permission: str) -> None:
        """Raise NotPermitted unless the actor may."""
        if not self.may(permission):
            raise NotPermitted(permission)
