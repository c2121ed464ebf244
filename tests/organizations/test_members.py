"""Members: added, changed, removed; an owner stays, and nobody's account is anybody else's."""

from __future__ import annotations

from functools import partial

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from pytest_django import Settings

from config.mail_server import MailServer
from organizations import accounts, keys, members
from organizations.actors import NotPermitted
from organizations.keys import InvalidKey, ScopesRefused
from organizations.members import AlreadyMember, LastOwner
from organizations.models import ApiKey, AuditEntry, Membership, Notice, User
from organizations.provisioning import provision
from organizations.rules import roles
from organizations.rules.notices import Kind
from tests.factories import Scene, new_scene
from tests.mail_sink import MailSink, use
from tests.organizations.notices.posting import gathered, post
from tests.racing import meanwhile, race, results

NEW = "anna@example.com"


def membership_of(scene: Scene, role: str) -> Membership:
    return scene.provisioned.members[role].membership


@pytest.fixture
def two_owners(scene: Scene) -> tuple[Membership, Membership]:
    """The owner of the scene and another."""
    second = members.add(scene.owner, NEW, roles.OWNER).membership
    return membership_of(scene, roles.OWNER), second


# --- adding -------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_new_person_gets_an_account_without_a_password(scene: Scene) -> None:
    invited = members.add(scene.owner, "Anna@EXAMPLE.com", roles.OPERATOR)
    user = User.objects.get(email="Anna@example.com")
    assert invited.membership.user == user
    assert not user.has_usable_password()
    assert not user.is_staff
    entry = AuditEntry.objects.get(act="membership.create")
    assert (entry.user, entry.after) == (
        scene.owner.user,
        {"user": "Anna@example.com", "role": "operator"},
    )


@pytest.mark.django_db
def test_an_account_that_exists_stays_as_it_is(scene: Scene) -> None:
    other = new_scene("Another")
    user = other.viewer.user
    password = user.password
    invited = members.add(scene.owner, user.email.upper(), roles.VIEWER)
    user.refresh_from_db()
    assert invited.membership.user == user
    assert user.password == password
    assert not invited.hand_over


@pytest.mark.django_db
def test_nobody_is_a_member_twice(scene: Scene) -> None:
    with pytest.raises(AlreadyMember):
        members.add(scene.owner, scene.viewer.user.email, roles.OWNER)
    assert membership_of(scene, roles.VIEWER).role == roles.VIEWER
    assert not Notice.objects.exists()


@pytest.mark.django_db
def test_only_an_owner_decides_over_members_and_keys(scene: Scene) -> None:
    target = membership_of(scene, roles.VIEWER).pk
    for actor in (scene.operator, scene.viewer):
        for act in (
            partial(members.add, actor, NEW, roles.OWNER),
            partial(members.invite_again, actor, target),
            partial(members.change_role, actor, target, roles.OWNER),
            partial(members.remove, actor, target),
            partial(keys.make, actor, target, "a key", ["commands:read"]),
        ):
            with pytest.raises(NotPermitted):
                act()


@pytest.mark.django_db
def test_nothing_of_another_organization_can_be_touched(scene: Scene) -> None:
    target = membership_of(new_scene("Another"), roles.VIEWER).pk
    for act in (
        partial(members.invite_again, scene.owner, target),
        partial(members.change_role, scene.owner, target, roles.OWNER),
        partial(members.remove, scene.owner, target),
        partial(keys.make, scene.owner, target, "a key", ["commands:read"]),
    ):
        with pytest.raises(Membership.DoesNotExist):
            act()


# --- the way in ---------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_new_member_is_told_by_mail_and_the_outbox_holds_no_secret(scene: Scene) -> None:
    invited = members.add(scene.owner, NEW, roles.OPERATOR)
    notice = Notice.objects.get(kind=Kind.MEMBER_ADDED)
    assert notice.recipient == invited.membership.user
    token = accounts.way_in(invited.membership.user).rstrip("/").rpartition("-")[2]
    kept = str(list(Notice.objects.values())) + str(list(AuditEntry.objects.values()))
    assert token not in kept
    assert "password/reset" not in kept


@pytest.mark.django_db
def test_the_mail_alone_holds_the_way_in(scene: Scene, settings: Settings) -> None:
    with MailSink() as sink:
        use(settings, sink.port)
        user = members.add(scene.owner, NEW, roles.OPERATOR).membership.user
        members.add(new_scene("Another").owner, scene.viewer.user.email, roles.VIEWER)
        gathered()
        post()
    invitation, other = sorted(sink.mails, key=lambda mail: mail["To"] != NEW)
    for part in ("plain", "html"):
        body = invitation.get_body([part])
        assert body
        assert user.pk.hex in body.get_content()
        assert f"As operator, by {scene.owner.user.email.split('@')[0]}" in body.get_content()
    told = other.get_body(["plain"])
    assert told
    assert "/accounts/login/" in told.get_content()
    assert "password/reset" not in told.get_content()
    assert "password/reset" not in str(list(Notice.objects.values()))


@pytest.mark.django_db
def test_without_a_mail_server_the_owner_hands_a_new_account_over(
    scene: Scene, settings: Settings
) -> None:
    assert members.add(scene.owner, NEW, roles.OPERATOR).hand_over
    settings.MAIL_SERVER = MailServer("mail.example", 25)
    assert not members.add(scene.owner, "bo@example.com", roles.OPERATOR).hand_over


@pytest.mark.django_db
def test_the_way_into_somebody_elses_organization_is_handed_over_to_nobody(scene: Scene) -> None:
    other = new_scene("Another")
    invited = members.add(scene.owner, NEW, roles.OPERATOR)
    assert invited.hand_over
    assert not members.add(other.owner, NEW, roles.VIEWER).hand_over
    assert not members.invite_again(scene.owner, invited.membership.pk).hand_over


@pytest.mark.django_db
def test_a_superusers_account_is_handed_over_to_nobody(scene: Scene) -> None:
    User.objects.create_superuser(NEW)
    assert not members.add(scene.owner, NEW, roles.OPERATOR).hand_over


@pytest.mark.django_db
@pytest.mark.usefixtures("plain_static")
def test_the_way_in_leads_once_to_choosing_a_password(scene: Scene) -> None:
    user = members.add(scene.owner, NEW, roles.OPERATOR).membership.user
    way_in = accounts.way_in(user)
    client = Client()
    form = client.get(way_in, follow=True)
    # The secret has left the address before the form is shown.
    path = form.redirect_chain[-1][0]
    assert path.endswith("set-password/")
    password = "a long enough word"
    client.post(path, {"password1": password, "password2": password})
    assert Client().login(request=None, email=NEW, username=NEW, password=password)
    assert "set-password" not in Client().get(way_in, follow=True).content.decode()
    user.refresh_from_db()
    assert accounts.way_in(user).endswith("/accounts/login/")


@pytest.mark.django_db
def test_inviting_again_is_on_record_and_told_once_more(scene: Scene) -> None:
    invited = members.add(scene.owner, NEW, roles.OPERATOR)
    assert members.invite_again(scene.owner, invited.membership.pk).hand_over
    assert Notice.objects.filter(recipient=invited.membership.user).count() == 2
    assert AuditEntry.objects.get(act="membership.invite").target_id == str(invited.membership.pk)


# --- roles --------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_role_holds_from_now_on_for_keys_too(scene: Scene) -> None:
    target = membership_of(scene, roles.OPERATOR)
    members.change_role(scene.owner, target.pk, roles.VIEWER)
    actor = keys.authenticate(scene.provisioned.members[roles.OPERATOR].api_key, None)
    assert not actor.may("commands:dispatch")
    entry = AuditEntry.objects.get(act="membership.edit")
    assert (entry.before["role"], entry.after["role"]) == ("operator", "viewer")


@pytest.mark.django_db
def test_the_same_role_again_changes_nothing(scene: Scene) -> None:
    members.change_role(scene.owner, membership_of(scene, roles.VIEWER).pk, roles.VIEWER)
    assert not AuditEntry.objects.filter(act="membership.edit").exists()


@pytest.mark.django_db
def test_an_owner_gets_into_the_admin_for_as_long_as_he_is_one(
    scene: Scene, two_owners: tuple[Membership, Membership]
) -> None:
    _, second = two_owners
    user = User.objects.get(pk=second.user_id)
    assert user.is_staff
    other = new_scene("Another")
    elsewhere = members.add(other.owner, NEW, roles.OWNER).membership
    members.change_role(scene.owner, second.pk, roles.VIEWER)
    user.refresh_from_db()
    assert user.is_staff
    members.remove(other.owner, elsewhere.pk)
    user.refresh_from_db()
    assert not user.is_staff


@pytest.mark.django_db
def test_who_was_let_into_the_admin_for_another_reason_stays(scene: Scene) -> None:
    user = scene.operator.user
    User.objects.filter(pk=user.pk).update(is_staff=True)
    members.change_role(scene.owner, membership_of(scene, roles.OPERATOR).pk, roles.VIEWER)
    user.refresh_from_db()
    assert user.is_staff


# --- removing -----------------------------------------------------------------------------------


@pytest.mark.django_db
def test_who_is_removed_is_out_and_his_keys_are_revoked_for_good(scene: Scene) -> None:
    target, text = (
        membership_of(scene, roles.OPERATOR),
        scene.provisioned.members[roles.OPERATOR].api_key,
    )
    members.remove(scene.owner, target.pk)
    with pytest.raises(InvalidKey):
        keys.authenticate(text, None)
    members.add(scene.owner, target.user.email, roles.OPERATOR)
    with pytest.raises(InvalidKey):
        keys.authenticate(text, None)
    removed = AuditEntry.objects.get(act="membership.remove")
    assert removed.before == {"user": target.user.email, "role": "operator"}
    assert AuditEntry.objects.filter(act="api_key.revoke").count() == 1


@pytest.mark.django_db
def test_keys_of_another_organization_go_on(scene: Scene) -> None:
    other = new_scene("Another")
    both = members.add(other.owner, scene.operator.user.email, roles.OPERATOR).membership
    _, elsewhere = keys.make(other.owner, both.pk, "elsewhere", ["commands:read"])
    members.remove(scene.owner, membership_of(scene, roles.OPERATOR).pk)
    assert keys.authenticate(elsewhere, None).organization == other.organization


# --- an owner stays -----------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_last_owner_neither_leaves_nor_steps_down(scene: Scene) -> None:
    owner = membership_of(scene, roles.OWNER)
    with pytest.raises(LastOwner):
        members.remove(scene.owner, owner.pk)
    with pytest.raises(LastOwner):
        members.change_role(scene.owner, owner.pk, roles.OPERATOR)
    assert members.is_last_owner(Membership.objects.get(pk=owner.pk))
    # Nothing of it was done: his key works.
    assert keys.authenticate(scene.provisioned.members[roles.OWNER].api_key, None)
    assert not AuditEntry.objects.filter(act__in=["membership.remove", "api_key.revoke"]).exists()


@pytest.mark.django_db
def test_with_another_owner_one_may_go(
    scene: Scene, two_owners: tuple[Membership, Membership]
) -> None:
    first, second = two_owners
    members.remove(scene.owner, first.pk)
    assert members.is_last_owner(second)


@pytest.mark.django_db
def test_an_owner_who_is_locked_out_does_not_count(
    scene: Scene, two_owners: tuple[Membership, Membership]
) -> None:
    first, second = two_owners
    User.objects.filter(pk=second.user_id).update(is_active=False)
    with pytest.raises(LastOwner):
        members.remove(scene.owner, first.pk)
    members.remove(scene.owner, second.pk)
    assert members.is_last_owner(first)


@pytest.mark.django_db
def test_the_database_keeps_an_owner_whoever_asks(scene: Scene) -> None:
    owners = Membership.objects.filter(organization=scene.organization, role=roles.OWNER)
    other = provision("Another").organization
    members.add(scene.owner, NEW, roles.OWNER)
    for change in (
        partial(owners.update, role=roles.VIEWER),
        owners.delete,
        partial(owners.update, organization=other),
    ):
        with (
            pytest.raises(IntegrityError, match="an organization keeps an owner"),
            transaction.atomic(),
        ):
            change()
    assert owners.count() == 2


@pytest.mark.django_db(transaction=True)
def test_two_owners_who_remove_each_other_leave_one() -> None:
    scene = new_scene()
    first = membership_of(scene, roles.OWNER)
    second = members.add(scene.owner, NEW, roles.OWNER).membership
    removed = results(
        race(
            partial(members.remove, scene.owner, second.pk),
            partial(members.remove, scene.owner, first.pk),
        ),
        LastOwner,
    )
    assert removed.count(None) == 1
    assert Membership.objects.filter(organization=scene.organization, role=roles.OWNER).count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_owners_who_step_down_at_once_leave_one() -> None:
    scene = new_scene()
    second = members.add(scene.owner, NEW, roles.OWNER).membership
    stepped = results(
        race(
            *(
                partial(members.change_role, scene.owner, pk, roles.VIEWER)
                for pk in (second.pk, membership_of(scene, roles.OWNER).pk)
            )
        ),
        LastOwner,
    )
    assert stepped.count(None) == 1


# --- keys ---------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_key_is_made_for_a_member_and_on_record_without_its_text(scene: Scene) -> None:
    target = membership_of(scene, roles.OPERATOR)
    key, text = keys.make(scene.owner, target.pk, "gateway", ["commands:ack", "commands:read"])
    actor = keys.authenticate(text, None)
    assert (actor.user, actor.role) == (target.user, roles.OPERATOR)
    entry = AuditEntry.objects.get(act="api_key.create")
    assert (entry.user, entry.target_id) == (scene.owner.user, str(key.pk))
    assert entry.after["scopes"] == ["commands:ack", "commands:read"]
    assert text.rpartition("_")[2] not in str(entry.after)
    assert key.digest not in str(entry.after)


@pytest.mark.django_db
def test_a_key_reaches_no_further_than_its_person(scene: Scene) -> None:
    with pytest.raises(ScopesRefused):
        keys.make(scene.owner, membership_of(scene, roles.VIEWER).pk, "x", ["commands:issue"])


@pytest.mark.django_db(transaction=True)
def test_no_key_slips_past_the_removal_of_its_person() -> None:
    scene = new_scene()
    target = membership_of(scene, roles.OPERATOR)
    make = partial(keys.make, scene.owner, target.pk, "late", ["commands:read"])
    with meanwhile(make) as made:
        members.remove(scene.owner, target.pk)
    assert isinstance(made.exception(), Membership.DoesNotExist)
    assert not ApiKey.objects.filter(user=target.user, revoked_at=None).exists()
