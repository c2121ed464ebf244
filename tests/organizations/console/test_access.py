"""Who gets in, in whose name, and what everybody else sees."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from organizations.models import Membership, User
from organizations.rules import roles
from tests.factories import Scene, new_scene
from tests.visitors import Page, Visitor

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]


def console_views(patterns: list[URLPattern | URLResolver]) -> Iterator[URLPattern]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from console_views(pattern.url_patterns)
        elif ".console." in pattern.callback.__module__:
            yield pattern


def test_every_view_of_the_console_asks_for_a_permission_that_exists() -> None:
    views = list(console_views(get_resolver().url_patterns))
    assert len(views) > 10
    for view in views:
        permission = getattr(view.callback, "permission", None)
        assert permission in roles.PERMISSIONS[roles.OWNER], f"{view.name} is not guarded"


def test_nobody_gets_in_without_signing_in() -> None:
    answer = Page(Client().get("/commands/?state=queued"))
    assert answer.to == "/accounts/login/?next=/commands/%3Fstate%3Dqueued"


def test_an_expired_session_leads_from_a_fragment_to_login_and_back_to_the_page() -> None:
    page = "http://testserver/commands/?state=failed"
    headers = {"HX-Request": "true", "HX-Current-URL": page, "Host": "testserver"}
    answer = Page(Client().get("/commands/", {"seen": "x"}, headers=headers))
    assert answer.status == 200
    assert answer.html == ""
    assert answer.to == "/accounts/login/?next=/commands/%3Fstate%3Dfailed"


def test_a_page_of_another_site_is_no_place_to_come_back_to() -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": "https://elsewhere.example/trap"}
    answer = Page(Client().get("/commands/", headers=headers))
    assert answer.to == "/accounts/login/?next=/"


def test_a_user_without_an_organization_is_told_what_to_do() -> None:
    client = Client()
    client.force_login(User.objects.create_user("new@example.com"))
    answer = Page(client.get("/commands/"))
    assert answer.status == 403
    assert "Ask an owner" in answer.text


def test_a_viewer_who_forges_a_request_is_refused(scene: Scene) -> None:
    command, viewer = scene.issued(), Visitor(scene.viewer)
    for name in ("dispatch", "retract", "reissue"):
        answer = viewer.post(reverse(name, args=[command.pk]), reason="forged")
        assert answer.status == 403
        assert "role" in answer.text
    command.refresh_from_db()
    assert command.state == "logged"


def test_a_refusal_inside_a_page_is_a_fragment(scene: Scene) -> None:
    answer = Visitor(scene.viewer).get_sheet(reverse("issue"))
    assert answer.status == 403
    assert "<html" not in answer.html


def test_someone_of_two_organizations_chooses_one(scene: Scene) -> None:
    other = new_scene("Another one")
    Membership.objects.create(
        organization=other.organization, user=scene.operator.user, role=roles.VIEWER
    )
    theirs, mine = other.issued(name="theirs"), scene.issued(name="mine")
    visitor = Visitor(scene.operator)
    for organization, shown in ((other.organization, theirs), (scene.organization, mine)):
        visitor.post(reverse("choose_organization"), organization=str(organization.pk))
        listed = visitor.get("/commands/").text
        assert shown.client_token in listed
        assert {theirs.name, mine.name} & set(listed.split()) == {shown.name}


@pytest.mark.parametrize("wanted", ["", "nonsense", "0192d3c4-0000-7000-8000-000000000000"])
def test_nobody_chooses_an_organization_he_is_not_in(scene: Scene, wanted: str) -> None:
    answer = Visitor(scene.owner).post(reverse("choose_organization"), organization=wanted)
    assert answer.status == 404


def test_nothing_of_another_organization_is_found(scene: Scene) -> None:
    other = new_scene()
    command, stranger = other.issued(), Visitor(scene.owner)
    paths = [
        *(
            reverse(name, args=[command.pk])
            for name in ("command", "dispatch", "retract", "reissue")
        ),
        *(reverse(name, args=[other.dataset.pk]) for name in ("arm", "disarm")),
        reverse("endpoint", args=[other.endpoint.pk]),
        reverse("disable_endpoint", args=[other.endpoint.pk]),
        reverse("enable_endpoint", args=[other.endpoint.pk]),
    ]
    for path in paths:
        assert stranger.get(path).status == 404
        assert stranger.get_sheet(path).status == 404
        assert stranger.post(path).status in (404, 405)


def test_no_page_is_kept_by_the_browser(scene: Scene) -> None:
    answer = Visitor(scene.viewer).get("/commands/")
    assert "no-store" in answer.response.headers["Cache-Control"]
    assert "HX-Request" in answer.response.headers["Vary"]


def test_a_stale_form_is_answered_with_what_to_do(scene: Scene) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(scene.operator.user)
    path = reverse("retract", args=[scene.issued().pk])
    assert "out of date" in Page(client.post(path)).text
    fragment = Page(client.post(path, headers={"HX-Request": "true"}))
    assert fragment.status == 403
    assert "<html" not in fragment.html


def test_sign_up_is_closed_kindly() -> None:
    answer = Page(Client().get("/accounts/signup/"))
    assert "Ask an owner" in answer.text


@pytest.mark.parametrize(
    "path", ["/accounts/login/", "/accounts/password/reset/", "/accounts/password/reset/done/"]
)
def test_account_pages_wear_the_consoles_dress(path: str) -> None:
    answer = Page(Client().get(path))
    assert answer.status == 200
    assert "console/tokens.css" in answer.html


def test_a_page_that_does_not_exist_says_so(scene: Scene) -> None:
    answer = Visitor(scene.viewer).get("/nothing/")
    assert answer.status == 404
    assert "There is nothing here" in answer.text
