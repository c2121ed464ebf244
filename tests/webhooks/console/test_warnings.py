"""That an endpoint is about to be disabled stands wherever somebody decides about it, before it happens."""

from __future__ import annotations

import pytest
from django.urls import reverse

from tests.factories import Scene, fail_with, new_endpoint
from tests.visitors import Visitor
from webhooks.models import Endpoint

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]


def fail_deliveries(endpoint: Endpoint, scene: Scene, count: int) -> None:
    """Each ends failed, by as many attempts as its policy makes."""
    for _ in range(count):
        delivery = scene.send(endpoint)
        attempts = 3 if endpoint.policy == "event" else 1
        fail_with(delivery, [400] * attempts)


@pytest.mark.parametrize(
    ("policy", "failures", "said"),
    [
        ("command", 18, "2 more failures disable it"),
        ("command", 19, "1 more failure disables it"),
        ("event", 3, "2 more failed deliveries disable it"),
        ("event", 4, "1 more failed delivery disables it"),
    ],
)
def test_the_list_and_the_page_say_how_many_failures_are_left(
    scene: Scene, policy: str, failures: int, said: str
) -> None:
    endpoint = new_endpoint(scene.owner, policy)
    fail_deliveries(endpoint, scene, failures)
    viewer = Visitor(scene.viewer)

    for address in (reverse("endpoints"), reverse("endpoint", args=[endpoint.pk])):
        assert said in viewer.get(address).text


def test_the_preview_of_a_dispatch_says_so_too(scene: Scene) -> None:
    fail_deliveries(scene.endpoint, scene, 19)

    preview = Visitor(scene.operator).get(reverse("dispatch", args=[scene.issued().pk]))

    assert "1 more failure disables it" in preview.text


def test_nothing_is_said_of_one_that_works(scene: Scene) -> None:
    scene.delivered()

    page = Visitor(scene.viewer).get(reverse("endpoint", args=[scene.endpoint.pk]))

    assert "more failure" not in page.text
    assert "20 failures in a row disable it" in page.text


def test_the_rule_of_deliveries_speaks_of_deliveries(scene: Scene) -> None:
    endpoint = new_endpoint(scene.owner, "event")

    page = Visitor(scene.viewer).get(reverse("endpoint", args=[endpoint.pk]))

    assert "5 failed deliveries in a row disable it" in page.text
