"""The admin's acts on people and keys."""

from __future__ import annotations

import pytest
from django.test import Client

from organizations import keys
from organizations.models import ApiKey, AuditEntry, Membership, Notice, Organization, User
from tests.administration import (
    act,
    changelist,
    html,
    logged_in,
    page_of,
    staff,
    superuser,
)
from tests.factories import Scene, new_scene
from webhooks import endpoints

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]


def key_of(scene: Scene, role: str) -> ApiKey:
    return ApiKey.objects.get(user=scene.provisioned.members[role].membership.user)


# --- keys ---------------------------------------------------------------------------------------


def test_revoking_a_key_asks_first(scene: Scene) -> None:
    key = key_of(scene, "operator")
    asked = act(staff(scene.owner), "revoke", [key])
    assert "A revoked key never works again" in asked
    keys.authenticate(scene.provisioned.members["operator"].api_key, None)


def test_a_revoked_key_lets_nobody_in_and_is_on_record(scene: Scene) -> None:
    key = key_of(scene, "operator")
    told = act(staff(scene.owner), "revoke", [key], confirmed="True")
    assert "is revoked." in told
    with pytest.raises(keys.InvalidKey):
        keys.authenticate(scene.provisioned.members["operator"].api_key, None)
    entry = AuditEntry.objects.get(act="api_key.revoke")
    assert (entry.user, entry.via, entry.target_id) == (scene.owner.user, "admin", str(key.pk))
    assert key.digest not in str(entry.after)


def test_revoking_again_changes_nothing(scene: Scene) -> None:
    key, client = key_of(scene, "operator"), staff(scene.owner)
    act(client, "revoke", [key], confirmed="True")
    revoked_at = key_of(scene, "operator").revoked_at
    assert "was revoked before." in act(client, "revoke", [key], confirmed="True")
    assert key_of(scene, "operator").revoked_at == revoked_at
    assert AuditEntry.objects.filter(act="api_key.revoke").count() == 1


@pytest.mark.parametrize("role", ["operator", "superuser"])
def test_nobody_but_an_owner_revokes(scene: Scene, role: str) -> None:
    client = superuser() if role == "superuser" else staff(scene.operator)
    act(client, "revoke", [key_of(scene, "viewer")], confirmed="True")
    assert key_of(scene, "viewer").revoked_at is None


def test_a_key_is_found_by_its_prefix(scene: Scene) -> None:
    key = key_of(scene, "owner")
    shown = html(staff(scene.owner), f"{changelist(ApiKey)}?q={key.prefix}")
    assert "1 API key" in shown


# --- people -------------------------------------------------------------------------------------


def user_form(**changes: str) -> dict[str, str]:
    return {"first_name": "", "last_name": "", "is_active": "on", **changes}


def test_an_owner_changes_nobodys_account(scene: Scene) -> None:
    client, person = staff(scene.owner), scene.operator.user
    assert client.post(page_of(person), user_form(is_superuser="on")).status_code == 403
    password = f"/admin/organizations/user/{person.pk}/password/"
    assert client.get(password).status_code == 403
    assert not User.objects.filter(is_superuser=True).exists()


def test_a_superuser_makes_a_person_staff_and_it_is_on_record(scene: Scene) -> None:
    person = scene.operator.user
    superuser().post(page_of(person), user_form(is_staff="on"))
    assert User.objects.get(pk=person.pk).is_staff
    entry = AuditEntry.objects.get(act="user.edit")
    assert entry.organization == scene.organization
    assert (entry.before, entry.after) == ({"is_staff": False}, {"is_staff": True})


def test_a_superuser_sets_a_new_password_and_it_is_on_record(scene: Scene) -> None:
    person = scene.operator.user
    address = f"/admin/organizations/user/{person.pk}/password/"
    new = "a long new password"
    form = {"usable_password": "true", "password1": new, "password2": new}
    client = superuser()
    html(client, address)
    client.post(address, {**form, "set-password": "1"})
    assert User.objects.get(pk=person.pk).check_password(new)
    entry = AuditEntry.objects.get(act="user.set_password")
    assert (entry.before, entry.after) == ({}, {})


def test_a_superuser_sets_up_an_organization(client: Client) -> None:
    client = superuser()
    client.post(changelist(Organization) + "add/", {"name": "New"})
    organization = Organization.objects.get()
    password = "a long new password"
    form = {"usable_password": "true", "password1": password, "password2": password}
    client.post(changelist(User) + "add/", {**form, "email": "first@example.com"})
    person = User.objects.get(email="first@example.com")
    form = {"organization": str(organization.pk), "user": str(person.pk), "role": "owner"}
    client.post(changelist(Membership) + "add/", form)
    assert Membership.objects.get().user == person
    acts = AuditEntry.objects.order_by("pk").values_list("act", flat=True)
    assert list(acts) == ["organization.create", "membership.create"]
    User.objects.filter(pk=person.pk).update(is_staff=True)
    assert "New" in html(logged_in(person), changelist(Organization))


# --- members ------------------------------------------------------------------------------------


def test_an_owner_changes_a_members_role_and_it_is_on_record(scene: Scene) -> None:
    membership = scene.provisioned.members["viewer"].membership
    staff(scene.owner).post(page_of(membership), {"role": "operator"})
    assert Membership.objects.get(pk=membership.pk).role == "operator"
    entry = AuditEntry.objects.get(act="membership.edit")
    assert (entry.before, entry.after) == ({"role": "viewer"}, {"role": "operator"})


def test_an_organization_keeps_an_owner(scene: Scene) -> None:
    membership = scene.provisioned.members["owner"].membership
    refused = staff(scene.owner).post(page_of(membership), {"role": "viewer"}).content.decode()
    assert "An organization keeps an owner." in refused
    assert Membership.objects.get(pk=membership.pk).role == "owner"


def test_an_owner_adds_only_people_he_sees(scene: Scene) -> None:
    stranger = new_scene("Another organization").operator.user
    form = {"organization": scene.organization.pk, "user": stranger.pk, "role": "viewer"}
    refused = staff(scene.owner).post(changelist(Membership) + "add/", form).content.decode()
    assert "Select a valid choice." in refused


def test_an_owner_renames_his_organization_and_it_is_on_record(scene: Scene) -> None:
    staff(scene.owner).post(page_of(scene.organization), {"name": "Renamed"})
    assert Organization.objects.get().name == "Renamed"
    assert AuditEntry.objects.get(act="organization.edit").after == {"name": "Renamed"}


# --- the audit trail ----------------------------------------------------------------------------


def test_the_audit_trail_is_searched_by_what_it_was_done_to(scene: Scene) -> None:
    shown = html(staff(scene.owner), f"{changelist(AuditEntry)}?q={scene.dataset.pk}")
    assert "2 audit entries" in shown  # made, and armed


# --- notices ------------------------------------------------------------------------------------


def test_an_owner_reads_every_notice_and_an_operator_his_own(scene: Scene) -> None:
    scene.failed()
    endpoints.disable(scene.owner, scene.endpoint.pk, "Off")
    of_command, of_endpoint = Notice.objects.order_by("pk")
    assert "2 notices" in html(staff(scene.owner), changelist(Notice))
    operator = staff(scene.operator)
    assert "1 notice" in html(operator, changelist(Notice))
    html(operator, page_of(of_command))
    assert operator.get(page_of(of_endpoint)).status_code == 404
