"""Who may do what: three roles, named permissions. A permission is also the scope of an API key."""

from __future__ import annotations

from typing import Final

OWNER: Final = "owner"
OPERATOR: Final = "operator"
VIEWER: Final = "viewer"
ROLES: Final = (OWNER, OPERATOR, VIEWER)

READ: Final = frozenset(
    {
        "commands:read",
        "deliveries:read",
        "endpoints:read",
        "events:read",
        "datasets:read",
    }
)
# An operator's key also serves an integrator: reporting outcomes and sending events are its work.
OPERATE: Final = frozenset(
    {
        "commands:issue",
        "commands:dispatch",
        "commands:ack",
        "commands:retract",
        "datasets:arm",
        "events:write",
    }
)
# Enabling an endpoint again, members, keys and the audit trail are an owner's alone.
OWN: Final = frozenset(
    {
        "endpoints:write",
        "endpoints:enable",
        "datasets:write",
        "members:write",
        "audit:read",
    }
)

PERMISSIONS: Final[dict[str, frozenset[str]]] = {
    OWNER: READ | OPERATE | OWN,
    OPERATOR: READ | OPERATE,
    VIEWER: READ,
}
# An API key may hold these; the rest are acts of a person in the console.
SCOPES: Final = READ | OPERATE | frozenset({"endpoints:write", "datasets:write"})


def permissions_of(role: str) -> frozenset[str]:
    """What a role may do; nothing for a name that is no role."""
    return PERMISSIONS.get(role, frozenset())


def scopes_for(role: str) -> list[str]:
    """Every scope that a key of somebody in this role may hold, sorted."""
    return sorted(permissions_of(role) & SCOPES)
