"""``manage.py create_key``."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from organizations import keys
from organizations.models import AuditEntry
from tests.factories import Scene, new_scene


def made(*arguments: str) -> str:
    out = io.StringIO()
    call_command("create_key", *arguments, stdout=out)
    return out.getvalue().strip()


def test_the_printed_key_works_and_its_making_is_on_record(scene: Scene) -> None:
    email = scene.operator.user.email
    text = made(email, "--name", "vehicle gateway", "--scope", "commands:ack")

    actor = keys.authenticate(text, None)
    assert (actor.user, actor.permissions) == (scene.operator.user, frozenset({"commands:ack"}))
    entry = AuditEntry.objects.get(act="api_key.create")
    assert entry.after == {
        "name": "vehicle gateway",
        "prefix": text[4:12],
        "user": email,
        "scopes": ["commands:ack"],
        "expiresAt": None,
    }
    assert text not in str(entry.after)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nobody@example.com",), "belongs to no such organization"),
        (("{viewer}", "--scope", "commands:issue"), "A key of a viewer may hold only"),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    scene: Scene, arguments: tuple[str, ...], sentence: str
) -> None:
    words = [word.format(viewer=scene.viewer.user.email) for word in arguments]
    with pytest.raises(CommandError, match=sentence):
        made(*words, "--name", "x")


def test_a_member_of_several_organizations_says_which(scene: Scene) -> None:
    other = new_scene("Another organization")
    user = scene.operator.user
    other.organization.memberships.create(user=user, role="viewer")
    with pytest.raises(CommandError, match="say which"):
        made(user.email, "--name", "x")
    text = made(user.email, "--name", "x", "--organization", str(other.organization.pk))
    assert keys.authenticate(text, None).organization == other.organization
