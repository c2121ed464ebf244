"""Whatever page somebody opens, nothing changes; whatever he may not do, he cannot by forging it."""

from __future__ import annotations

from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.urls import resolve

from organizations.rules import roles
from tests.factories import Scene, new_scene
from tests.pages import addresses, things_of
from tests.visitors import Visitor

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]

OURS = ("organizations", "webhooks", "commands")


def everything() -> dict[str, str]:
    """A digest of each table of ours."""
    found = {}
    with connection.cursor() as cursor:
        for table in (
            m._meta.db_table for app in OURS for m in apps.get_app_config(app).get_models()
        ):
            cursor.execute(
                f"SELECT coalesce(md5(string_agg(t::text, '|' ORDER BY t::text)), '') FROM {table} t"
            )
            [found[table]] = cursor.fetchone()
    return found


def permission_of(address: str) -> str:
    """What one must hold to be there."""
    view: Any = resolve(address).func
    return str(view.permission)


def test_looking_at_every_page_changes_nothing(scene: Scene) -> None:
    pages, owner = addresses(things_of(scene)), Visitor(scene.owner)
    before = everything()

    for name, address in pages.items():
        assert owner.get(address).status == 200, name
        assert owner.get_sheet(address).status == 200, name

    assert everything() == before


@pytest.mark.parametrize("role", [roles.OPERATOR, roles.VIEWER])
def test_what_a_role_may_not_do_it_is_refused_however_it_asks(scene: Scene, role: str) -> None:
    actor = scene.operator if role == roles.OPERATOR else scene.viewer
    pages, visitor = addresses(things_of(scene)), Visitor(actor)
    beyond = {n: a for n, a in pages.items() if not actor.may(permission_of(a))}
    before = everything()

    for name, address in beyond.items():
        form = {"password": scene.provisioned.members[role].password, "confirmed": "on"}
        statuses = [
            visitor.get(address).status,
            visitor.get_sheet(address).status,
            visitor.post(address, **form).status,
            visitor.post_sheet(address, **form).status,
        ]
        assert statuses == [403] * 4, name

    assert everything() == before
    assert {"enable_endpoint", "rotate_secret", "members"} <= set(beyond)
    assert ("dispatch" in beyond) == (role == roles.VIEWER)


def test_a_page_of_another_organization_does_not_exist(scene: Scene) -> None:
    stranger = Visitor(new_scene("Strangers").owner)
    shown = {n: a for n, a in addresses(things_of(scene)).items() if resolve(a).kwargs}
    before = everything()

    for name, address in shown.items():
        assert stranger.get(address).status == 404, name
        assert stranger.post(address).status in (404, 405), name

    assert everything() == before
    assert len(shown) > 10
