"""Who may do what: the contract's three sentences, as sets."""

from __future__ import annotations

import pytest

from organizations.rules.roles import PERMISSIONS, ROLES, SCOPES, permissions_of, scopes_for

READING = {
    "commands:read",
    "deliveries:read",
    "endpoints:read",
    "events:read",
    "datasets:read",
}
OPERATING = {
    "commands:issue",
    "commands:dispatch",
    "commands:retract",
    "commands:ack",
    "datasets:arm",
    "events:write",
}
OWNING = {
    "endpoints:write",
    "endpoints:enable",
    "datasets:write",
    "members:write",
    "audit:read",
}


def test_a_viewer_reads() -> None:
    assert permissions_of("viewer") == READING


def test_an_operator_reads_and_operates() -> None:
    assert permissions_of("operator") == READING | OPERATING


def test_an_owner_does_everything() -> None:
    assert permissions_of("owner") == READING | OPERATING | OWNING


def test_an_owner_alone_enables_endpoints() -> None:
    assert [role for role in ROLES if "endpoints:enable" in PERMISSIONS[role]] == ["owner"]


@pytest.mark.parametrize("name", ["", "Owner", "admin", "owner "])
def test_what_is_no_role_may_nothing(name: str) -> None:
    assert permissions_of(name) == frozenset()
    assert scopes_for(name) == []


@pytest.mark.parametrize("role", ROLES)
def test_a_key_never_holds_more_than_its_role(role: str) -> None:
    assert set(scopes_for(role)) <= permissions_of(role) & SCOPES


def test_acts_of_a_person_are_no_scopes() -> None:
    assert not SCOPES & {"endpoints:enable", "members:write", "audit:read"}
