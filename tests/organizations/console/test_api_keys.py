"""API keys on the Members and keys page: made once, shown once, revoked for good."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse

from organizations import keys
from organizations.keys import InvalidKey
from organizations.models import ApiKey, AuditEntry
from organizations.rules import roles
from tests.factories import Scene, new_scene
from tests.organizations.console.test_members import member, password
from tests.visitors import Page, Visitor

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]

KEY = re.compile(r"cck_[0-9a-f]{8}_[A-Za-z0-9_-]{43}")


def make(scene: Scene, visitor: Visitor, **fields: str | list[str]) -> Page:
    path = reverse("make_key")
    form = {
        "name": "gateway",
        "member": str(member(scene, roles.OPERATOR).pk),
        "scopes": ["commands:ack", "commands:read"],
        "expires": "90",
        "password": password(scene),
        "token": visitor.get(path).value("token"),
    }
    return Page(visitor.client.post(path, {**form, **fields}))


def test_a_key_is_shown_once_with_a_call_to_try_it(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    visitor = Visitor(scene.owner)
    with caplog.at_level("DEBUG"):
        answer = make(scene, visitor)
    assert answer.status == 201
    [text] = set(KEY.findall(answer.html))
    assert (
        f'curl "http://127.0.0.1:8000/api/commands/list?limit=1" -H "x-api-key: {text}"'
        in answer.text
    )
    assert "no-store" in answer.response.headers["Cache-Control"]
    actor = keys.authenticate(text, None)
    assert (actor.user, actor.permissions) == (
        scene.operator.user,
        frozenset({"commands:ack", "commands:read"}),
    )
    assert text[13:] not in caplog.text
    for path in ("/members/", "/audit/", "/notices/", reverse("make_key")):
        assert text[13:] not in visitor.get(path).html


def test_the_call_works(scene: Scene) -> None:
    [text] = set(KEY.findall(make(scene, Visitor(scene.owner)).html))
    answer = Client().get("/api/commands/list?limit=1", headers={"x-api-key": text})
    assert answer.status_code == 200


def test_a_key_expires_when_it_was_said(scene: Scene) -> None:
    make(scene, Visitor(scene.owner), expires="7")
    key = ApiKey.objects.get(name="gateway")
    assert key.expires_at
    assert round((key.expires_at - key.created_at).total_seconds() / 86_400) == 7
    make(scene, Visitor(scene.owner), name="for good", expires="never")
    assert ApiKey.objects.get(name="for good").expires_at is None


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": ""}, "This field is required"),
        ({"scopes": []}, "Choose at least one"),
        ({"scopes": ["members:write"]}, "members:write is not one of the available choices"),
        ({"scopes": ["endpoints:write"]}, "Beyond the role operator: endpoints:write"),
        ({"password": "a guess"}, "This is not your password"),
        ({"expires": "eternity"}, "eternity is not one of the available choices"),
    ],
)
def test_what_is_wrong_with_a_key_is_said_beside_the_field(
    scene: Scene, fields: dict[str, str | list[str]], said: str
) -> None:
    answer = make(scene, Visitor(scene.owner), **fields)
    assert answer.status == 422
    assert said in answer.text
    assert not ApiKey.objects.filter(name="gateway").exists()


def test_a_form_sent_twice_makes_one_key(scene: Scene) -> None:
    visitor = Visitor(scene.owner)
    assert make(scene, visitor, token="one").status == 201
    again = make(scene, visitor, token="one")
    assert again.to == "/members/"
    assert ApiKey.objects.filter(name="gateway").count() == 1


def test_a_key_is_revoked_after_a_question(scene: Scene) -> None:
    visitor = Visitor(scene.owner)
    text = scene.provisioned.members[roles.VIEWER].api_key
    key = ApiKey.objects.get(prefix=text[4:12])
    path = reverse("revoke_key", args=[key.pk])
    assert "It was never used" in visitor.get_sheet(path).text
    assert visitor.post_sheet(path).status == 204
    with pytest.raises(InvalidKey):
        keys.authenticate(text, None)
    assert visitor.post_sheet(path).status == 204
    assert AuditEntry.objects.filter(act="api_key.revoke").count() == 1


def test_a_key_is_told_by_its_prefix_and_never_shown(scene: Scene) -> None:
    text = scene.provisioned.members[roles.OPERATOR].api_key
    page = Visitor(scene.owner).get("/members/")
    assert f"{text[:12]}…" in page.text
    assert not KEY.search(page.html)
    assert ApiKey.objects.get(prefix=text[4:12]).digest not in page.html


def test_a_key_says_who_made_it_in_whose_name_when_used_and_until_when(scene: Scene) -> None:
    visitor = Visitor(scene.owner)
    _, text = keys.make(scene.owner, member(scene, roles.OPERATOR).pk, "gate", ["commands:read"])
    keys.authenticate(text, None)
    shown = visitor.get("/members/").text
    assert f"{scene.operator.user.email} made by {scene.owner.user.email}" in shown
    assert "0 s ago" in shown
    key = ApiKey.objects.get(prefix=text[4:12])
    keys.revoke(scene.owner, key)
    revoked = visitor.get("/members/")
    assert "Revoked" in revoked.text
    assert not revoked.has(f"revoke-{key.pk}")


def test_a_key_in_the_name_of_another_organizations_member_is_not_made(scene: Scene) -> None:
    stranger = member(new_scene("Another"), roles.VIEWER)
    answer = make(scene, Visitor(scene.owner), member=str(stranger.pk))
    assert answer.status == 422
    assert not ApiKey.objects.filter(name="gateway").exists()
