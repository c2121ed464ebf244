"""Endpoints on the console: read by everybody, registered by owners."""

from __future__ import annotations

import pytest
from django.urls import reverse

from organizations.provisioning import provision
from tests.factories import Scene, answer, claim, fail_with, record
from tests.visitors import Visitor, queries_of
from webhooks.console.tags import percent
from webhooks.models import Endpoint

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]


def page_of(endpoint: Endpoint) -> str:
    return reverse("endpoint", args=[endpoint.pk])


def fresh_form(owner: Visitor, **changes: str) -> dict[str, str]:
    """The register form as a browser would send it."""
    token = owner.get(reverse("register_endpoint")).value("token")
    return {
        "name": "New",
        "url": "https://new.example/in",
        "policy": "event",
        "token": token,
    } | changes


def test_an_endpoint_shows_its_schedule_and_its_attempts(scene: Scene) -> None:
    fail_with(scene.dispatched(), [503, 500])
    shown = Visitor(scene.viewer).get(page_of(scene.endpoint)).text
    assert "Wait before 0 s 5 s 25 s 2 min 5 s 10 min 25 s" in shown
    assert "After the first 0 s 5 s 30 s 2 min 35 s 13 min" in shown
    assert "18 more failures disable it" in shown
    assert "503" in shown


def test_failures_that_disabled_it_are_told_in_words(scene: Scene) -> None:
    endpoint = scene.another_endpoint("event")
    for _ in range(5):
        delivery = scene.send(endpoint)
        fail_with(delivery, [500, 500, 500])
    shown = Visitor(scene.viewer).get(page_of(endpoint)).text
    assert "It failed 5 times in a row." in shown
    assert "Only an owner enables it again" in shown


def test_the_figures_stand_beside_the_strip(scene: Scene) -> None:
    viewer = Visitor(scene.viewer)
    assert (
        "Success rate — Median latency — Counted since 0 s ago"
        in viewer.get(page_of(scene.endpoint)).text
    )
    command, attempt = scene.on_the_wire()
    record(answer(attempt, 503, duration_ms=900))
    record(answer(claim(command), 200, duration_ms=45))
    record(answer(scene.on_the_wire()[1], 200, duration_ms=60))
    shown = viewer.get(page_of(scene.endpoint)).text
    assert "Success rate 66.7 % of 3 attempts Median latency 60 ms" in shown


@pytest.mark.parametrize(
    ("rate", "said"),
    [(0.0, "0 %"), (0.0001, "0.1 %"), (0.975, "97.5 %"), (0.9999, "99.9 %"), (1.0, "100 %")],
)
def test_a_rate_in_words(rate: float, said: str) -> None:
    assert percent(rate) == said


def test_the_list_takes_the_same_queries_for_three_endpoints_and_thirty(scene: Scene) -> None:
    visitor = Visitor(scene.viewer)
    for _ in range(2):
        scene.another_endpoint()
    few = queries_of(lambda: visitor.get("/endpoints/"))
    for _ in range(27):
        scene.another_endpoint()
    assert queries_of(lambda: visitor.get("/endpoints/")) == few


def test_the_page_takes_the_same_queries_for_three_attempts_and_thirty(scene: Scene) -> None:
    visitor = Visitor(scene.viewer)
    for _ in range(3):
        scene.delivered()
    few = queries_of(lambda: visitor.get(page_of(scene.endpoint)))
    for _ in range(27):
        scene.delivered()
    assert queries_of(lambda: visitor.get(page_of(scene.endpoint))) == few


def test_a_poll_without_news_is_empty_and_one_with_news_is_not(scene: Scene) -> None:
    visitor, path = Visitor(scene.viewer), page_of(scene.endpoint)
    revision = visitor.get(path).revision
    assert visitor.poll(path, "endpoint-live", revision).status == 204
    scene.delivered()
    assert visitor.poll(path, "endpoint-live", revision).status == 200


def test_attempts_are_paged_by_key(scene: Scene) -> None:
    for _ in range(52):
        scene.delivered()
    first = Visitor(scene.viewer).get(page_of(scene.endpoint))
    oldest = scene.endpoint.attempts.order_by("pk")[2].pk
    assert first.html.count('id="a-') == 50
    assert f"?before={oldest}" in first.html
    second = Visitor(scene.viewer).get(page_of(scene.endpoint), before=str(oldest))
    assert second.html.count('id="a-') == 2


def test_a_secret_is_shown_once(scene: Scene) -> None:
    owner = Visitor(scene.owner)
    form = fresh_form(owner)
    created = owner.post(reverse("register_endpoint"), **form)
    assert created.status == 201
    assert "whsec_" in created.text
    endpoint = scene.organization.endpoints.get(name="New")
    again = owner.post(reverse("register_endpoint"), **form)
    assert again.to == page_of(endpoint)
    assert "whsec_" not in owner.get(page_of(endpoint)).html
    assert scene.organization.endpoints.filter(name="New").count() == 1


def test_a_url_that_is_not_allowed_is_refused_beside_its_field(scene: Scene) -> None:
    owner = Visitor(scene.owner)
    form = fresh_form(owner, url="https://127.0.0.1/hook")
    refused = owner.post(reverse("register_endpoint"), **form)
    assert refused.status == 422
    assert "loopback" in refused.text
    # The refused form was not used up.
    form["url"] = "https://new.example/in"
    assert owner.post(reverse("register_endpoint"), **form).status == 201


def test_an_endpoint_named_by_an_attacker_is_inert(scene: Scene) -> None:
    hostile = scene.another_endpoint(name="<img src=x onerror=alert(1)>\u202e")
    shown = Visitor(scene.viewer).get("/endpoints/")
    assert "<img" not in shown.html
    assert "\u202e" not in shown.html
    assert "<img" not in Visitor(scene.viewer).get(page_of(hostile)).html


def test_without_any_endpoint_the_page_teaches_the_next_step(db: None) -> None:
    bare = provision("Nothing yet")
    owner, viewer = (Visitor(bare.actor(role)) for role in ("owner", "viewer"))
    assert owner.get("/endpoints/").has("register-first")
    assert "An owner of the organization registers the first." in viewer.get("/endpoints/").text
