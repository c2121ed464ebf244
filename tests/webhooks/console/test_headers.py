"""An owner's headers in the console: written as lines, stored as secrets, never shown."""

from __future__ import annotations

import pytest
from django.urls import reverse

from tests.factories import Scene
from tests.visitors import Visitor
from tests.webhooks.console.test_acts import edit_form
from tests.webhooks.console.test_endpoints import fresh_form, page_of
from webhooks import endpoints, secrets
from webhooks.console.header_lines import MASK
from webhooks.models import Endpoint

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]

SECRET = "Bearer very-secret"


@pytest.fixture
def endpoint(scene: Scene) -> Endpoint:
    """An endpoint with two headers."""
    return scene.another_endpoint(headers={"Authorization": SECRET, "X-Tenant": "north"})


def stored(endpoint: Endpoint) -> dict[str, str]:
    endpoint.refresh_from_db()
    return dict(secrets.decrypt_headers(endpoint.headers_ciphertext))


def edited(scene: Scene, endpoint: Endpoint, *lines: str) -> Endpoint:
    """The endpoint after its owner saved these lines."""
    owner, path = Visitor(scene.owner), reverse("edit_endpoint", args=[endpoint.pk])
    form = edit_form(owner, path, headers="\r\n".join(lines))
    del form["is_default"]
    assert owner.post(path, **form).to == page_of(endpoint)
    return endpoint


def test_headers_are_given_at_registration(scene: Scene) -> None:
    owner = Visitor(scene.owner)
    form = fresh_form(owner, headers=f"Authorization: {SECRET}\r\n\r\nX-Tenant:  a: b ")
    assert owner.post(reverse("register_endpoint"), **form).status == 201
    endpoint = scene.organization.endpoints.get(name="New")
    assert stored(endpoint) == {"Authorization": SECRET, "X-Tenant": "a: b"}


def test_names_are_shown_and_values_nowhere(scene: Scene, endpoint: Endpoint) -> None:
    owner = Visitor(scene.owner)
    form = owner.get(reverse("edit_endpoint", args=[endpoint.pk]))
    page = owner.get(page_of(endpoint))
    assert f"Authorization: {MASK}" in form.text
    assert "Authorization, X-Tenant" in page.text
    for shown in (form, page):
        assert "very-secret" not in shown.html
        assert "north" not in shown.html


def test_a_masked_line_keeps_its_value(scene: Scene, endpoint: Endpoint) -> None:
    lines = [f"X-Tenant: {MASK}", f"authorization: {MASK}", "X-New: 1"]
    after = stored(edited(scene, endpoint, *lines))
    assert after == {"Authorization": SECRET, "X-Tenant": "north", "X-New": "1"}


def test_a_line_taken_away_removes_the_header(scene: Scene, endpoint: Endpoint) -> None:
    assert stored(edited(scene, endpoint, "X-Tenant: south")) == {"X-Tenant": "south"}
    assert stored(edited(scene, endpoint)) == {}


def test_lines_in_another_order_change_nothing(scene: Scene, endpoint: Endpoint) -> None:
    since = endpoint.health_since
    edited(scene, endpoint, f"X-Tenant: {MASK}", f"Authorization: {MASK}")
    endpoint.refresh_from_db()
    assert endpoint.health_since == since


def test_what_another_owner_added_meanwhile_stays(scene: Scene, endpoint: Endpoint) -> None:
    owner, path = Visitor(scene.owner), reverse("edit_endpoint", args=[endpoint.pk])
    form = edit_form(owner, path, headers=f"Authorization: {MASK}")
    del form["is_default"]
    endpoints.edit(scene.owner, endpoint.pk, {"headers": {"X-Added": "meanwhile"}})
    owner.post(path, **form)
    assert stored(endpoint) == {"Authorization": SECRET, "X-Added": "meanwhile"}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("Authorization", "Line 1 is no header"),
        ("X-One: 1\r\nX-Two:", "Line 2 is no header"),
        ("X-One: classified-1\r\nx-one: classified-2", "x-one occurs twice."),
        (f"X-Other: {MASK}", "No value of X-Other is stored"),
        ("Host: classified.example", "Host is set by the console"),
        ("X-One: classified\N{LINE SEPARATOR}X-Two: 2", "line break or another control character"),
        ("X-One: " + "classified" * 200, "has 1 to 1024 bytes"),
    ],
)
def test_what_is_no_header_is_refused_beside_the_field_without_its_value(
    scene: Scene, endpoint: Endpoint, lines: str, said: str
) -> None:
    owner, path = Visitor(scene.owner), reverse("edit_endpoint", args=[endpoint.pk])
    form = edit_form(owner, path, headers=lines)
    del form["is_default"]
    refused = owner.post(path, **form)
    assert refused.status == 422
    error = refused.html.split('id="id_headers_error"')[1].split("</div>")[0]
    assert said in error
    assert "classified" not in error
    assert stored(endpoint) == {"Authorization": SECRET, "X-Tenant": "north"}
