"""A page with sixty rows asks the database as often as one with three."""

from __future__ import annotations

import pytest
from django.test import override_settings

from commands import datasets
from organizations import keys
from organizations.models import Membership, User
from organizations.rules import roles
from tests.factories import WORKER, Scene, answer, record
from tests.pages import addresses, things_of
from tests.visitors import Visitor, queries_of
from webhooks.engine import claims

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]

FEW, MANY = 3, 60


def add_rows(scene: Scene, count: int) -> None:
    """So many more of everything that a page lists."""
    for number in range(count):
        scene.issued()
        scene.dispatched()
        scene.published(number=number)
        endpoint = scene.another_endpoint("event")
        scene.send(endpoint)
        datasets.create_dataset(scene.owner, scene.experiment, f"Dataset {number}", endpoint)
        user = User.objects.create_user(f"{endpoint.pk.hex}@example.com", "a password of hers")
        Membership.objects.create(organization=scene.organization, user=user, role=roles.OPERATOR)
        keys.create_key(scene.organization, user, "program")
    attempt_everything()


def attempt_everything() -> None:
    """One attempt of each delivery that is due: a third goes well, a third fails for good."""
    with override_settings(ENDPOINT_UNPROVEN_IN_FLIGHT=1000, ENDPOINT_MAX_IN_FLIGHT=1000):
        made = claims.claim(1000, WORKER)
    record(*(answer(one, (200, 503, 400)[n % 3]) for n, one in enumerate(made)))


def test_every_page_takes_as_many_queries_with_sixty_rows_as_with_three(scene: Scene) -> None:
    things, owner = things_of(scene), Visitor(scene.owner)
    pages = addresses(things)

    def counted() -> dict[str, int]:
        for address in pages.values():
            assert owner.get(address).status == 200  # what is cached is cached
        return {name: queries_of(lambda a=a: owner.get(a)) for name, a in pages.items()}  # type: ignore[misc]

    attempt_everything()
    add_rows(scene, FEW)
    few = counted()
    add_rows(scene, MANY - FEW)
    many = counted()

    more = {name: (few[name], many[name]) for name in pages if many[name] > few[name]}
    assert not more, f"queries with {FEW} rows and with {MANY}: {more}"
