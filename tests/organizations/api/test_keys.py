"""Who gets in, and how far."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest
from django.utils import timezone

from organizations import keys
from organizations.models import ApiKey, AuditEntry, Membership
from organizations.rules import roles
from tests.factories import Scene
from tests.organizations.api.client import Api, problem


def test_without_a_key_nothing_is_answered(db: None) -> None:
    answer = Api().get("commands/list")

    problem(answer, 401, "missing_api_key")
    assert answer["WWW-Authenticate"].startswith("ApiKey")


@pytest.mark.parametrize(
    "key",
    [
        "",
        "nonsense",
        "cck_00000000_" + "a" * 43,
        "cck_é",
        "a, b",
        "x" * 10_000,
    ],
)
def test_an_unknown_key_is_refused(db: None, key: str) -> None:
    answer = Api(key).get("commands/list")

    problem(answer, 401, "invalid_api_key")
    assert answer["WWW-Authenticate"].startswith("ApiKey")


def test_a_key_with_one_wrong_character_is_refused(scene: Scene) -> None:
    key = scene.provisioned.members[roles.OWNER].api_key
    wrong = key[:-1] + ("A" if key[-1] != "A" else "B")

    problem(Api(wrong).get("commands/list"), 401, "invalid_api_key")


def test_an_expired_key_is_refused(scene: Scene) -> None:
    a_second_ago = timezone.now() - timedelta(seconds=1)
    _, text = keys.create_key(scene.organization, scene.owner.user, "old", expires_at=a_second_ago)

    problem(Api(text).get("commands/list"), 401, "invalid_api_key")


def test_a_revoked_key_is_refused(scene: Scene) -> None:
    key, text = keys.create_key(scene.organization, scene.owner.user, "leaked")
    ApiKey.objects.filter(pk=key.pk).update(revoked_at=timezone.now())

    problem(Api(text).get("commands/list"), 401, "invalid_api_key")


def test_the_key_of_somebody_who_left_is_refused(scene: Scene) -> None:
    Membership.objects.filter(user=scene.operator.user).delete()

    problem(Api.of(scene, roles.OPERATOR).get("commands/list"), 401, "invalid_api_key")


def test_a_key_in_the_address_is_not_looked_at(scene: Scene) -> None:
    key = scene.provisioned.members[roles.OWNER].api_key

    for name in ("x-api-key", "api_key", "key"):
        problem(Api().get("commands/list", **{name: key}), 401, "missing_api_key")


def test_no_cache_may_keep_an_answer(scene: Scene) -> None:
    assert Api.of(scene).get("commands/list")["Cache-Control"] == "no-store"
    assert Api().get("commands/list")["Cache-Control"] == "no-store"


def test_a_missing_scope_is_named(scene: Scene) -> None:
    api = Api.with_scopes(scene, "commands:read")

    told = problem(api.post("commands/issue"), 403, "missing_scope")

    assert "commands:issue" in told["detail"]


def test_a_key_may_never_do_more_than_its_user_may_today(scene: Scene) -> None:
    Membership.objects.filter(user=scene.operator.user).update(role=roles.VIEWER)
    api = Api.of(scene, roles.OPERATOR)

    problem(api.post("commands/issue"), 403, "missing_scope")
    assert api.get("commands/list").status_code == 200


def test_an_act_through_a_key_is_audited_with_the_key_and_the_address(scene: Scene) -> None:
    Api.of(scene).post("experiments", {"name": "Second"})

    entry = AuditEntry.objects.latest("pk")
    assert (entry.act, entry.via, entry.user) == ("experiment.create", "api", scene.owner.user)
    assert entry.api_key is not None
    assert entry.address == "127.0.0.1"


def test_a_key_is_written_to_no_log(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    key = scene.provisioned.members[roles.OWNER].api_key
    api = Api(key)

    api.get("commands/list", nonsense="1")
    api.send("commands/issue", "{")
    Api(key + "x").get("commands/list")

    assert key not in caplog.text
