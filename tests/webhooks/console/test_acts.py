"""What owners do to endpoints on the console, and nobody else; looking changes nothing."""

from __future__ import annotations

import pytest
from django.urls import reverse

from organizations.rules import roles
from tests.factories import Scene, answer, claim, no_answer, record
from tests.visitors import Visitor
from webhooks import endpoints
from webhooks.console import passwords
from webhooks.models import Endpoint

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]

ACTS = ["disable_endpoint", "enable_endpoint", "ping_endpoint"]


def page_of(endpoint: Endpoint) -> str:
    return reverse("endpoint", args=[endpoint.pk])


def act_of(scene: Scene, name: str) -> str:
    return reverse(name, args=[scene.endpoint.pk])


def state_of(scene: Scene) -> dict[str, object]:
    """Everything of the endpoint that an act could change."""
    secrets = list(scene.endpoint.secrets.order_by("pk").values())
    [row] = Endpoint.objects.filter(pk=scene.endpoint.pk).values()
    return {**row, "secrets": secrets, "deliveries": scene.endpoint.deliveries.count()}


def password_of(scene: Scene) -> str:
    return scene.provisioned.members[roles.OWNER].password


@pytest.mark.parametrize("name", ACTS)
def test_only_an_owner_acts(scene: Scene, name: str) -> None:
    before = state_of(scene)
    for actor in (scene.operator, scene.viewer):
        visitor = Visitor(actor)
        assert visitor.get_sheet(act_of(scene, name)).status == 403
        assert visitor.post(act_of(scene, name)).status == 403
    assert state_of(scene) == before


@pytest.mark.parametrize("name", ACTS)
def test_looking_changes_nothing(scene: Scene, name: str) -> None:
    before, owner = state_of(scene), Visitor(scene.owner)
    for page in (owner.get(act_of(scene, name)), owner.get_sheet(act_of(scene, name))):
        assert page.status == 200
        assert page.has("confirm")
    assert state_of(scene) == before


@pytest.mark.parametrize("name", ACTS)
def test_an_archived_endpoint_is_offered_no_act_and_refuses_each(scene: Scene, name: str) -> None:
    endpoints.archive(scene.owner, scene.endpoint.pk)
    before, owner = state_of(scene), Visitor(scene.owner)
    page = owner.get(page_of(scene.endpoint))
    assert "Archived" in page.text
    assert act_of(scene, name) not in page.html
    refused = owner.post_sheet(act_of(scene, name), password=password_of(scene))
    assert refused.status == 409
    assert "not used again" in refused.text
    assert state_of(scene) == before


def test_an_archived_endpoint_is_in_no_list(scene: Scene) -> None:
    endpoints.archive(scene.owner, scene.endpoint.pk)
    assert scene.endpoint.name not in Visitor(scene.owner).get("/endpoints/").text


def test_an_operator_sees_no_act_of_an_owner(scene: Scene) -> None:
    operator = Visitor(scene.operator)
    page = operator.get(page_of(scene.endpoint))
    assert not [name for name in ACTS if act_of(scene, name) in page.html]
    assert not operator.get("/endpoints/").has("register")
    assert operator.get(reverse("register_endpoint")).status == 403


def test_disabling_says_what_it_ends_and_then_ends_it(scene: Scene) -> None:
    waiting = scene.dispatched()
    owner, path = Visitor(scene.owner), act_of(scene, "disable_endpoint")
    assert "end failed" in owner.get_sheet(path).text
    done = owner.post_sheet(path, reason="Receiver is moving")
    assert done.status == 204
    assert "acted" in done.response.headers["HX-Trigger"]
    waiting.refresh_from_db()
    assert waiting.state == "failed"
    assert "Receiver is moving" in owner.get(page_of(scene.endpoint)).text


# --- pinging -------------------------------------------------------------------------------------


def test_a_ping_is_sent_and_its_answer_is_news_on_the_page(scene: Scene) -> None:
    owner, page = Visitor(scene.owner), page_of(scene.endpoint)
    assert "Nobody has pinged it yet." in owner.get(page).text
    assert owner.post_sheet(act_of(scene, "ping_endpoint")).status == 204
    waits = owner.get(page)
    assert "Last ping Waits" in waits.text
    attempt = claim(scene.endpoint.deliveries.get(is_ping=True))
    flies = owner.poll(page, "endpoint-live", waits.revision)
    assert "Last ping On the wire" in flies.text
    record(answer(attempt, 418, duration_ms=45))
    news = owner.poll(page, "endpoint-live", flies.revision)
    assert "Last ping 418 45 ms" in news.text


def test_a_disabled_endpoint_is_pinged_before_it_is_enabled(
    scene: Scene, disabled: Endpoint
) -> None:
    owner, enable = Visitor(scene.owner), act_of(scene, "enable_endpoint")
    assert "Nobody has pinged it yet." in owner.get_sheet(enable).text
    assert owner.get(page_of(disabled)).has("ping")
    owner.post_sheet(act_of(scene, "ping_endpoint"))
    assert "waits to be sent" in owner.get_sheet(enable).text
    record(no_answer(claim(disabled.deliveries.get(is_ping=True)), "connection_refused"))
    assert "had no answer: refused" in owner.get_sheet(enable).text
    owner.post_sheet(act_of(scene, "ping_endpoint"))
    ping = disabled.deliveries.filter(is_ping=True).latest("pk")
    record(answer(claim(ping), 200, duration_ms=45))
    assert "was answered with 200 after 45 ms" in owner.get_sheet(enable).text


# --- enabling ------------------------------------------------------------------------------------


@pytest.fixture
def disabled(scene: Scene) -> Endpoint:
    return endpoints.disable(scene.owner, scene.endpoint.pk, "Off for a day")


def test_an_owner_enables_by_hand_with_the_password(scene: Scene, disabled: Endpoint) -> None:
    owner, path = Visitor(scene.owner), act_of(scene, "enable_endpoint")
    assert "Off for a day" in owner.get(path).text
    assert owner.post(path, password=password_of(scene)).to == page_of(disabled)
    disabled.refresh_from_db()
    assert disabled.enabled


@pytest.mark.parametrize(
    ("password", "said"), [("", "This field is required."), ("guess", "This is not your password.")]
)
def test_without_the_password_nothing_is_enabled(
    scene: Scene, disabled: Endpoint, password: str, said: str
) -> None:
    refused = Visitor(scene.owner).post_sheet(act_of(scene, "enable_endpoint"), password=password)
    assert refused.status == 422
    assert refused.has("id_password_error")
    assert said in refused.text
    assert refused.value("password") == ""
    disabled.refresh_from_db()
    assert not disabled.enabled


def test_a_password_is_not_guessed_for_long(scene: Scene, disabled: Endpoint) -> None:
    owner, path = Visitor(scene.owner), act_of(scene, "enable_endpoint")
    for _ in range(passwords.TRIES):
        owner.post_sheet(path, password="guess")
    refused = owner.post_sheet(path, password=password_of(scene))
    assert refused.status == 422
    assert "Try again in five minutes." in refused.text
    disabled.refresh_from_db()
    assert not disabled.enabled


def test_a_right_password_uses_up_no_try(scene: Scene) -> None:
    user = scene.owner.user
    assert all(passwords.is_right(user, password_of(scene)) for _ in range(passwords.TRIES + 1))
