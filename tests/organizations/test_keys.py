"""API keys: made once, stored as a digest, recognised until they expire or are revoked."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from commands import datasets
from organizations import keys
from organizations.actors import Actor
from organizations.keys import InvalidKey
from organizations.models import ApiKey, AuditEntry, Membership
from organizations.rules.roles import scopes_for
from tests.factories import Scene, new_scene


def new_key(scene: Scene, role: str = "operator", **facts: object) -> tuple[ApiKey, str]:
    user = scene.provisioned.actor(role).user
    return keys.create_key(scene.organization, user, "a key", **facts)  # type: ignore[arg-type]


def refused(text: str) -> bool:
    with pytest.raises(InvalidKey):
        keys.authenticate(text, None)
    return True


def test_a_key_is_recognised_as_its_user_in_its_organization(scene: Scene) -> None:
    key, text = new_key(scene)

    actor = keys.authenticate(text, "192.0.2.7")

    assert actor.organization == scene.organization
    assert actor.user == scene.operator.user
    assert (actor.role, actor.via, actor.address) == ("operator", "api", "192.0.2.7")
    assert actor.api_key == key


def test_a_key_has_256_random_bits_and_only_its_digest_is_stored(scene: Scene) -> None:
    key, text = new_key(scene)

    secret = text.removeprefix(f"cck_{key.prefix}_")
    stored = " ".join(str(value) for value in ApiKey.objects.filter(pk=key.pk).values_list()[0])
    assert re.fullmatch(r"cck_[0-9a-f]{8}_[A-Za-z0-9_-]{43}", text)
    assert secret not in stored
    assert re.fullmatch(r"[0-9a-f]{64}", key.digest)


def test_a_key_has_every_scope_of_its_role_unless_said(scene: Scene) -> None:
    for role in ("owner", "operator", "viewer"):
        assert new_key(scene, role)[0].scopes == scopes_for(role)

    assert new_key(scene, scopes=["commands:read"])[0].scopes == ["commands:read"]


def test_a_key_is_never_given_more_than_its_role_allows(scene: Scene) -> None:
    for scopes in (["commands:issue"], ["endpoints:enable"], ["no such scope"]):
        with pytest.raises(ValueError, match="viewer may hold only"):
            new_key(scene, "viewer", scopes=scopes)


def test_somebody_elses_organization_gives_no_key(scene: Scene) -> None:
    stranger = new_scene("Another").owner.user

    with pytest.raises(Membership.DoesNotExist):
        keys.create_key(scene.organization, stranger, "a key")


def test_a_key_reaches_as_far_as_its_scopes(scene: Scene) -> None:
    _, text = new_key(scene, scopes=["commands:read"])

    actor = keys.authenticate(text, None)

    assert actor.permissions == {"commands:read"}
    assert not actor.may("commands:issue")


def test_a_key_never_reaches_past_what_the_role_allows_today(scene: Scene) -> None:
    _, text = new_key(scene)

    Membership.objects.filter(user=scene.operator.user).update(role="viewer")

    actor = keys.authenticate(text, None)
    assert actor.may("commands:read")
    assert not actor.may("commands:issue")


def test_a_key_ends_with_its_time(scene: Scene) -> None:
    now = timezone.now()
    _, running = new_key(scene, expires_at=now + timedelta(hours=1))
    _, expired = new_key(scene, expires_at=now)

    assert keys.authenticate(running, None)
    assert refused(expired)


def test_a_revoked_key_is_refused(scene: Scene) -> None:
    key, text = new_key(scene)

    ApiKey.objects.filter(pk=key.pk).update(revoked_at=timezone.now())

    assert refused(text)


def test_a_key_ends_with_its_user_and_with_the_membership(scene: Scene) -> None:
    _, operators = new_key(scene, "operator")
    _, viewers = new_key(scene, "viewer")

    type(scene.operator.user).objects.filter(pk=scene.operator.user.pk).update(is_active=False)
    Membership.objects.filter(user=scene.viewer.user).delete()

    assert refused(operators)
    assert refused(viewers)


def test_nothing_that_is_no_key_is_recognised(scene: Scene) -> None:
    key, text = new_key(scene)
    other_secret = text[:-1] + ("A" if text[-1] != "A" else "B")
    wrong = ["", " ", text[:-1], text + "A", f"{text}\n", f" {text}", text.upper(), other_secret]
    wrong += [key.digest, key.prefix, f"cck_00000000_{'A' * 43}", "cck_é", "cck_\0"]

    assert all(refused(text) for text in wrong)


def test_a_refusal_does_not_say_what_was_wrong(scene: Scene) -> None:
    key, text = new_key(scene)
    ApiKey.objects.filter(pk=key.pk).update(revoked_at=timezone.now())

    words = set()
    for wrong in (text, "nonsense", f"cck_00000000_{'A' * 43}"):
        with pytest.raises(InvalidKey) as refusal:
            keys.authenticate(wrong, None)
        words.add(str(refusal.value))

    assert words == {""}


def test_last_use_is_noted_at_most_once_a_minute(scene: Scene) -> None:
    key, text = new_key(scene)

    keys.authenticate(text, None)
    key.refresh_from_db()
    first = key.last_used_at
    keys.authenticate(text, None)
    key.refresh_from_db()
    assert first
    assert key.last_used_at == first

    ApiKey.objects.filter(pk=key.pk).update(last_used_at=first - timedelta(minutes=2))
    keys.authenticate(text, None)
    key.refresh_from_db()
    assert key.last_used_at
    assert key.last_used_at >= first


def test_neither_a_key_nor_a_password_is_in_what_is_printed(scene: Scene) -> None:
    members = scene.provisioned.members

    printed = repr(scene) + repr(members)

    for member in members.values():
        assert member.api_key not in printed
        assert member.password not in printed


def test_an_actor_with_a_key_is_audited_with_it(scene: Scene) -> None:
    key, text = new_key(scene)
    actor: Actor = keys.authenticate(text, "192.0.2.7")

    datasets.disarm(actor, scene.dataset.pk)

    entry = AuditEntry.objects.latest("pk")
    assert (entry.api_key, entry.via, entry.address) == (key, "api", "192.0.2.7")
