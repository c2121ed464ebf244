"""What an endpoint is told of: picked from a catalogue or written, shown in words."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from tests.factories import Scene
from tests.visitors import Page, Visitor
from tests.webhooks.console.test_acts import edit_form
from tests.webhooks.console.test_endpoints import fresh_form, page_of
from webhooks.console.subscriptions import OFFERED, told
from webhooks.models import Endpoint
from webhooks.rules.event_types import CATALOGUE, is_subscription

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]


def registered(scene: Scene) -> list[str]:
    return list(scene.organization.endpoints.get(name="New").event_types)


def boxes(page: Page) -> set[str]:
    """The boxes that are ticked."""
    ticked = re.findall(r'value="([^"]+)"\s+checked', page.html)
    return set(ticked) & set(OFFERED)


def test_every_type_of_the_catalogue_that_can_be_subscribed_to_is_offered(scene: Scene) -> None:
    page = Visitor(scene.owner).get(reverse("register_endpoint"))
    for one in CATALOGUE:
        assert (f'value="{one.name}"' in page.html) == one.subscribable
        assert (one.description in page.text) == one.subscribable
    assert {"*", "command.*", "endpoint.*"} <= set(OFFERED)
    assert all(is_subscription(one) for one in OFFERED)


def test_what_is_picked_and_what_is_written_is_subscribed_to(scene: Scene) -> None:
    owner = Visitor(scene.owner)
    form = fresh_form(owner, event_types="command.failed", event_types_other="order.*, order.paid")
    assert owner.post(reverse("register_endpoint"), **form).status == 201
    assert registered(scene) == ["command.failed", "order.*", "order.paid"]


def test_a_type_that_is_none_is_refused_beside_the_field_and_the_choice_kept(scene: Scene) -> None:
    owner = Visitor(scene.owner)
    form = fresh_form(owner, event_types="command.*", event_types_other="nonsense!")
    refused = owner.post(reverse("register_endpoint"), **form)
    assert refused.status == 422
    assert refused.has("id_event_types_error")
    assert boxes(refused) == {"command.*"}
    assert refused.value("event_types_other") == "nonsense!"


def test_the_form_of_an_edit_shows_what_is_chosen(scene: Scene) -> None:
    endpoint = scene.another_endpoint(event_types=["command.acked", "order.*"])
    page = Visitor(scene.owner).get(reverse("edit_endpoint", args=[endpoint.pk]))
    assert boxes(page) == {"command.acked"}
    assert page.value("event_types_other") == "order.*"


def test_an_edit_that_changes_only_the_order_of_types_changes_nothing(scene: Scene) -> None:
    endpoint = scene.another_endpoint(event_types=["order.*", "command.acked"])
    owner, path = Visitor(scene.owner), reverse("edit_endpoint", args=[endpoint.pk])
    form = edit_form(owner, path, event_types="command.acked", event_types_other="order.*")
    del form["is_default"]
    assert "Nothing was changed." in owner.get(owner.post(path, **form).to).text
    assert Endpoint.objects.get(pk=endpoint.pk).event_types == ["order.*", "command.acked"]


def test_the_page_tells_in_words_what_an_endpoint_is_told_of(scene: Scene) -> None:
    endpoint = scene.another_endpoint(event_types=["command.*", "order.*", "ping"])
    shown = Visitor(scene.viewer).get(page_of(endpoint)).text
    assert "command.* Whatever happens to commands" in shown
    assert "order.* Every type that begins with order." in shown
    assert "ping Sent to the endpoint that it concerns only" in shown
    assert "No events." in Visitor(scene.viewer).get(page_of(scene.endpoint)).text


def test_everything_has_its_words() -> None:
    [everything] = told(["*"])
    assert everything.words.startswith("Everything")
