"""What owners do to endpoints on the console, and nobody else; looking changes nothing."""

from __future__ import annotations

import pytest
from django.db.models.functions import Now
from django.urls import reverse

from organizations import passwords
from organizations.rules import roles
from tests.factories import Scene, answer, claim, fail_with, no_answer, record
from tests.visitors import Visitor
from webhooks import endpoints
from webhooks.models import Endpoint

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]

ACTS = [
    "edit_endpoint",
    "ping_endpoint",
    "rotate_secret",
    "disable_endpoint",
    "enable_endpoint",
    "archive_endpoint",
]


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


# --- editing -------------------------------------------------------------------------------------


CARRIED = ("policy", "receives_commands", "description", "is_default", "event_types", "headers")


def edit_form(owner: Visitor, path: str, **changes: str) -> dict[str, str]:
    """The edit form as a browser would send it: as it was made, but for the changes."""
    page = owner.get_sheet(path)
    form = {name: page.value(name) for name in ("name", "url")}
    for name in (*form, *CARRIED):
        form[f"initial-{name}"] = page.value(f"initial-{name}")
    form |= {name: form[f"initial-{name}"] for name in ("policy", "headers")}
    form["event_types_other"] = form["initial-event_types"]
    return form | {"receives_commands": "on", "is_default": "on"} | changes


def test_an_edit_changes_fields_and_starts_the_counters_from_zero(scene: Scene) -> None:
    fail_with(scene.dispatched(), [503, 503])
    owner, path = Visitor(scene.owner), act_of(scene, "edit_endpoint")
    assert "counters start from zero" in owner.get_sheet(path).text
    form = edit_form(owner, path, name="Depot", event_types="command.*", description="Night shift")
    assert owner.post_sheet(path, **form).to == page_of(scene.endpoint)
    scene.endpoint.refresh_from_db()
    assert (scene.endpoint.name, scene.endpoint.event_types) == ("Depot", ["command.*"])
    page = owner.get(page_of(scene.endpoint)).text
    assert "Depot is saved." in page
    assert "Night shift" in page
    assert "No outcome yet" in page


def test_an_edit_without_a_change_resets_nothing(scene: Scene) -> None:
    owner, path = Visitor(scene.owner), act_of(scene, "edit_endpoint")
    before = state_of(scene)
    assert owner.post(path, **edit_form(owner, path)).to == page_of(scene.endpoint)
    assert state_of(scene) == before


def test_what_an_owner_did_not_touch_keeps_what_another_made_of_it(scene: Scene) -> None:
    owner, path = Visitor(scene.owner), act_of(scene, "edit_endpoint")
    form = edit_form(owner, path, name="Depot")
    endpoints.edit(scene.owner, scene.endpoint.pk, {"policy": "telemetry"})
    owner.post(path, **form)
    scene.endpoint.refresh_from_db()
    assert (scene.endpoint.name, scene.endpoint.policy) == ("Depot", "telemetry")


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("url", "https://127.0.0.1/hook", "loopback"),
        ("name", "", "This field is required."),
        ("policy", "sometimes", "Select a valid choice."),
        ("event_types", "nonsense!", "is no type of events"),
        ("is_default", "", "Make another endpoint the default"),
    ],
)
def test_a_value_that_is_not_possible_is_refused_beside_its_field(
    scene: Scene, field: str, value: str, said: str
) -> None:
    owner, path, before = Visitor(scene.owner), act_of(scene, "edit_endpoint"), state_of(scene)
    form = edit_form(owner, path) | {field: value}
    refused = owner.post_sheet(path, **{name: text for name, text in form.items() if text})
    assert refused.status == 422
    assert refused.has(f"id_{field}_error")
    assert said in refused.text
    assert state_of(scene) == before


def test_another_endpoint_becomes_the_default(scene: Scene) -> None:
    other, owner = scene.another_endpoint(), Visitor(scene.owner)
    path = reverse("edit_endpoint", args=[other.pk])
    owner.post(path, **edit_form(owner, path))
    other.refresh_from_db()
    scene.endpoint.refresh_from_db()
    assert (other.is_default, scene.endpoint.is_default) == (True, False)


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


# --- the secret ----------------------------------------------------------------------------------


def rotation(owner: Visitor, path: str, **form: str) -> dict[str, str]:
    return {"token": owner.get_sheet(path).value("token"), "overlap_hours": "24"} | form


def valid_secrets(endpoint: Endpoint) -> int:
    return endpoint.secrets.exclude(expires_at__lte=Now()).count()


def test_a_new_secret_is_shown_once_and_the_old_one_signs_for_the_overlap(scene: Scene) -> None:
    owner, path = Visitor(scene.owner), act_of(scene, "rotate_secret")
    assert owner.get_sheet(path).value("overlap_hours") == "24"
    form = rotation(owner, path, overlap_hours="2")
    rotated = owner.post(path, **form)
    assert rotated.status == 200
    assert "whsec_" in rotated.text
    assert "signs too until" in rotated.text
    assert valid_secrets(scene.endpoint) == 2
    assert owner.post(path, **form).to == page_of(scene.endpoint)
    assert scene.endpoint.secrets.count() == 2
    assert "whsec_" not in owner.get(page_of(scene.endpoint)).html


def test_an_emergency_is_confirmed_and_drops_every_old_secret(scene: Scene) -> None:
    owner, path = Visitor(scene.owner), act_of(scene, "rotate_secret")
    form = rotation(owner, path, emergency="on")
    asked = owner.post(path, **form)
    assert asked.status == 200
    assert "whsec_" not in asked.text
    assert scene.endpoint.secrets.count() == 1
    again = {name: asked.value(name) for name in ("token", "overlap_hours", "emergency")}
    rotated = owner.post(path, **again, confirmed=asked.value("confirmed"))
    assert "whsec_" in rotated.text
    assert "signs no more" in rotated.text
    assert valid_secrets(scene.endpoint) == 1


def test_an_overlap_is_refused_beside_its_field(scene: Scene) -> None:
    owner, path = Visitor(scene.owner), act_of(scene, "rotate_secret")
    refused = owner.post(path, **rotation(owner, path, overlap_hours="169"))
    assert refused.status == 422
    assert refused.has("id_overlap_hours_error")
    assert scene.endpoint.secrets.count() == 1


def test_more_secrets_than_a_delivery_has_room_for_are_refused(scene: Scene) -> None:
    for _ in range(4):
        endpoints.rotate_secret(scene.owner, scene.endpoint.pk)
    owner, path = Visitor(scene.owner), act_of(scene, "rotate_secret")
    refused = owner.post(path, **rotation(owner, path))
    assert refused.status == 409
    assert "Wait until one has expired" in refused.text


# --- archiving -----------------------------------------------------------------------------------


def test_archiving_says_what_is_over_and_then_ends_it(scene: Scene) -> None:
    owner, path = Visitor(scene.owner), act_of(scene, "archive_endpoint")
    asked = owner.get_sheet(path).text
    assert "cannot be undone" in asked
    assert "It is the default" in asked
    assert owner.post_sheet(path).status == 204
    scene.endpoint.refresh_from_db()
    assert scene.endpoint.archived_at
    assert "Archived" in owner.get(page_of(scene.endpoint)).text


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
