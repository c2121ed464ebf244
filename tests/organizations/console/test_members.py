"""The Members and keys page: what an owner does there, and that nobody else does it."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import Settings

from config.mail_server import MailServer
from organizations import keys, members
from organizations.keys import InvalidKey
from organizations.models import ApiKey, AuditEntry, Membership, User
from organizations.rules import roles
from tests.factories import Scene, new_scene
from tests.visitors import Page, Visitor, queries_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]

NEW = "anna@example.com"
KEY = re.compile(r"cck_[0-9a-f]{8}_[A-Za-z0-9_-]{43}")


def password(scene: Scene) -> str:
    return scene.provisioned.members[roles.OWNER].password


def member(scene: Scene, role: str) -> Membership:
    return scene.provisioned.members[role].membership


def add(scene: Scene, visitor: Visitor, **fields: str) -> Page:
    path = reverse("add_member")
    form = {
        "email": NEW,
        "role": roles.OPERATOR,
        "password": password(scene),
        "token": visitor.get(path).value("token"),
    }
    return visitor.post(path, **{**form, **fields})


# --- the page -----------------------------------------------------------------------------------


def test_an_owner_sees_members_and_keys(scene: Scene) -> None:
    shown = Visitor(scene.owner).get("/members/")
    for role in roles.ROLES:
        assert scene.provisioned.actor(role).user.email in shown.text
        assert f"first key of the {role}" in shown.text
    assert "you" in shown.text


def test_nothing_of_another_organization_is_listed(scene: Scene) -> None:
    other = new_scene("Another")
    shown = Visitor(scene.owner).get("/members/").text
    assert other.owner.user.email not in shown


def test_the_page_takes_the_same_queries_for_three_and_sixty(scene: Scene) -> None:
    visitor = Visitor(scene.owner)
    few = queries_of(lambda: visitor.get("/members/"))
    for number in range(20):
        user = User.objects.create_user(f"m{number}@example.com")
        Membership.objects.create(organization=scene.organization, user=user, role=roles.VIEWER)
        keys.create_key(scene.organization, user, f"key {number}")
    assert queries_of(lambda: visitor.get("/members/")) == few


def test_members_and_keys_are_paged_by_key(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("organizations.console.members.PAGE_SIZE", 2)
    visitor = Visitor(scene.owner)
    first = visitor.get("/members/")
    emails = sorted(scene.provisioned.actor(role).user.email for role in roles.ROLES)
    assert emails[2] not in first.html.partition("<main")[2].partition("api-keys-title")[0]
    assert first.has("more-members-link")
    assert emails[2] in visitor.get("/members/", after=emails[1]).text
    found = list(ApiKey.objects.order_by("-pk"))
    assert first.has(f"k-{found[1].pk}")
    assert not first.has(f"k-{found[2].pk}")
    assert visitor.get("/members/", keys_after=str(found[1].pk)).has(f"k-{found[2].pk}")
    assert visitor.get("/members/", keys_after="nonsense").status == 404


def test_a_poll_without_news_is_empty_and_one_with_news_is_not(scene: Scene) -> None:
    visitor = Visitor(scene.owner)
    revision = visitor.get("/members/").revision
    assert visitor.poll("/members/", "members-live", revision).status == 204
    members.add(scene.owner, NEW, roles.VIEWER)
    assert NEW in visitor.poll("/members/", "members-live", revision).text


# --- who may ------------------------------------------------------------------------------------


def addresses(scene: Scene) -> list[str]:
    target = member(scene, roles.VIEWER).pk
    key = ApiKey.objects.get(user=scene.viewer.user)
    return [
        *(
            reverse(name, args=[target])
            for name in ("change_role", "invite_again", "remove_member")
        ),
        reverse("revoke_key", args=[key.pk]),
    ]


@pytest.mark.parametrize("role", [roles.OPERATOR, roles.VIEWER])
def test_who_is_no_owner_is_refused_also_when_he_forges_the_request(
    scene: Scene, role: str
) -> None:
    visitor = Visitor(scene.provisioned.actor(role))
    mine = scene.provisioned.members[role]
    forged = {
        "email": NEW,
        "role": roles.OWNER,
        "name": "forged",
        "member": str(mine.membership.pk),
        "scopes": "commands:read",
        "expires": "never",
        "password": mine.password,
        "token": "a-token",
    }
    everything = [reverse("members"), reverse("add_member"), reverse("make_key"), *addresses(scene)]
    for path in everything:
        assert visitor.get(path).status == 403
        assert visitor.get_sheet(path).status == 403
        assert visitor.post(path, **forged).status in (403, 405)
        assert visitor.post_sheet(path, **forged).status in (403, 405)
    assert Membership.objects.filter(organization=scene.organization).count() == 3
    assert ApiKey.objects.filter(revoked_at=None).count() == 3
    assert "nav-members" not in visitor.get("/datasets/").html


def test_another_organizations_members_and_keys_do_not_exist(scene: Scene) -> None:
    visitor = Visitor(scene.owner)
    form = {"role": roles.OWNER, "password": password(scene), "token": "a-token"}
    for path in addresses(new_scene("Another")):
        assert visitor.get(path).status == 404
        assert visitor.post(path, **form).status == 404
    assert visitor.get(reverse("remove_member", args=[10**30])).status == 404


def test_nothing_is_done_by_looking(scene: Scene) -> None:
    visitor = Visitor(scene.owner)
    for path in (reverse("add_member"), reverse("make_key"), *addresses(scene)):
        assert visitor.get(path).status == 200
        assert visitor.get_sheet(path).status == 200
    assert not AuditEntry.objects.exclude(target_type__in=["dataset", "experiment", "endpoint"])


# --- adding -------------------------------------------------------------------------------------


def test_adding_hands_the_way_in_over_once_where_there_is_no_mail_server(scene: Scene) -> None:
    visitor = Visitor(scene.owner)
    answer = add(scene, visitor)
    assert answer.status == 201
    way_in = re.search(r"http://[^<\s]*/accounts/password/reset/key/[^<\s]*", answer.html)
    assert way_in
    for path in ("/members/", "/audit/", "/notices/"):
        page = visitor.get(path)
        assert NEW in page.text
        assert "password/reset" not in page.html
    assert "invited" in visitor.get("/members/").text


def test_with_a_mail_server_the_way_in_is_shown_to_nobody(scene: Scene, settings: Settings) -> None:
    settings.MAIL_SERVER = MailServer("mail.example", 25)
    visitor = Visitor(scene.owner)
    answer = add(scene, visitor)
    assert answer.to == "/members/"
    shown = visitor.get("/members/")
    assert f"{NEW} is a member. A mail with the way in is sent." in shown.text
    assert "password/reset" not in shown.html


def test_adding_asks_for_the_owners_password(scene: Scene) -> None:
    visitor = Visitor(scene.owner)
    refused = add(scene, visitor, password="a guess")
    assert refused.status == 422
    assert "This is not your password" in refused.text
    assert not User.objects.filter(email=NEW).exists()
    assert add(scene, visitor).status == 201


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"email": "nobody"}, "Enter a valid email address"),
        ({"email": ""}, "This field is required"),
        ({"role": "emperor"}, "emperor is not one of the available choices"),
        ({"role": ""}, "This field is required"),
    ],
)
def test_what_is_wrong_is_said_beside_the_field(
    scene: Scene, fields: dict[str, str], said: str
) -> None:
    refused = add(scene, Visitor(scene.owner), **fields)
    assert refused.status == 422
    assert said in refused.text


def test_a_member_is_not_added_twice_and_the_form_may_be_mended(scene: Scene) -> None:
    visitor = Visitor(scene.owner)
    path = reverse("add_member")
    form = {
        "role": roles.OWNER,
        "password": password(scene),
        "token": visitor.get(path).value("token"),
    }
    refused = visitor.post(path, email=scene.viewer.user.email, **form)
    assert refused.status == 422
    assert "is a member already" in refused.text
    assert visitor.post(path, email=NEW, **form).status == 201


def test_a_form_sent_twice_adds_once(scene: Scene) -> None:
    visitor = Visitor(scene.owner)
    assert add(scene, visitor, token="one").status == 201
    assert add(scene, visitor, token="one", email="bo@example.com").to == "/members/"
    assert not User.objects.filter(email="bo@example.com").exists()


def test_a_lost_link_is_replaced_by_a_new_one(scene: Scene) -> None:
    target = members.add(scene.owner, NEW, roles.VIEWER).membership
    visitor = Visitor(scene.owner)
    path = reverse("invite_again", args=[target.pk])
    token = visitor.get(path).value("token")
    answer = visitor.post(path, token=token)
    assert answer.status == 201
    assert "password/reset/key" in answer.html
    assert visitor.post(path, token=token).to == "/members/"


def test_who_has_a_password_is_never_handed_over(scene: Scene) -> None:
    visitor = Visitor(scene.owner)
    answer = visitor.post(
        reverse("invite_again", args=[member(scene, roles.VIEWER).pk]), token="one"
    )
    assert answer.to == "/members/"


# --- roles and removing -------------------------------------------------------------------------


def test_a_role_is_changed_with_the_owners_password(scene: Scene) -> None:
    visitor, target = Visitor(scene.owner), member(scene, roles.VIEWER)
    path = reverse("change_role", args=[target.pk])
    assert visitor.post_sheet(path, role=roles.OWNER, password="a guess").status == 422
    answer = visitor.post_sheet(path, role=roles.OPERATOR, password=password(scene))
    assert answer.status == 204
    assert "is an operator now" in answer.response.headers["HX-Trigger"]
    target.refresh_from_db()
    assert target.role == roles.OPERATOR


def test_a_role_holds_in_pages_that_are_open(scene: Scene) -> None:
    operator = Visitor(scene.operator)
    path = reverse("retract", args=[scene.issued().pk])
    assert operator.get(path).status == 200
    members.change_role(scene.owner, member(scene, roles.OPERATOR).pk, roles.VIEWER)
    assert operator.post(path, reason="late").status == 403


def test_who_is_removed_is_out_at_once(scene: Scene) -> None:
    operator, visitor = Visitor(scene.operator), Visitor(scene.owner)
    path = reverse("remove_member", args=[member(scene, roles.OPERATOR).pk])
    assert "first key of the operator" in visitor.get_sheet(path).text
    answer = visitor.post_sheet(path)
    assert answer.status == 204
    assert operator.get("/commands/").status == 403
    with pytest.raises(InvalidKey):
        keys.authenticate(scene.provisioned.members[roles.OPERATOR].api_key, None)
    assert visitor.post_sheet(path).status == 404


def test_the_only_owner_is_told_why_he_stays(scene: Scene) -> None:
    visitor, owner = Visitor(scene.owner), member(scene, roles.OWNER)
    page = visitor.get("/members/")
    assert "The only owner stays one" in page.text
    for name, form in (
        ("remove_member", {}),
        ("change_role", {"role": roles.VIEWER, "password": password(scene)}),
    ):
        answer = visitor.post_sheet(reverse(name, args=[owner.pk]), **form)
        assert answer.status == 409
        assert "Make somebody else an owner first" in answer.text
    owner.refresh_from_db()
    assert owner.role == roles.OWNER


def test_an_owner_who_removes_himself_leaves_the_page(scene: Scene) -> None:
    members.add(scene.owner, NEW, roles.OWNER)
    visitor = Visitor(scene.owner)
    path = reverse("remove_member", args=[member(scene, roles.OWNER).pk])
    assert "This is you" in visitor.get_sheet(path).text
    assert visitor.post_sheet(path).to == "/"
    assert visitor.get("/members/").status == 403


def test_a_form_of_another_site_does_nothing(scene: Scene) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(scene.owner.user)
    for path in (reverse("add_member"), reverse("make_key"), *addresses(scene)):
        assert client.post(path, {}).status_code == 403
