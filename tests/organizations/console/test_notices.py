"""The Notices page: what was told, to whom, and what somebody wants to be told."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from organizations.models import AuditEntry, Membership, Notice
from organizations.notices import outbox
from organizations.rules.notices import MUTABLE, Kind
from tests.factories import Scene, new_scene
from tests.organizations.notices.posting import disabling, fact_for, tell
from tests.visitors import Visitor, queries_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]

ALL_ON = {kind.value: "on" for kind in MUTABLE}


def sent() -> None:
    mail = outbox.claim()
    assert mail
    outbox.record_sent(mail, "mail")


def test_an_operator_sees_his_own_and_an_owner_everybodys(scene: Scene) -> None:
    tell(fact_for(scene.operator, name="turn_left"), disabling(scene.organization.pk, name="Gate"))
    new_scene("Another organization").failed(name="elsewhere")
    operator, owner = (Visitor(actor).get("/notices/") for actor in (scene.operator, scene.owner))
    assert "turn_left" in operator.text
    assert "Gate" not in operator.text
    assert scene.operator.user.email in owner.text
    assert "turn_left" in owner.text
    assert "Gate" in owner.text
    assert "elsewhere" not in owner.text
    assert "No notice yet" in Visitor(scene.viewer).get("/notices/").text


def test_each_state_has_words_of_its_own(scene: Scene) -> None:
    visitor = Visitor(scene.operator)
    tell(fact_for(scene.operator))
    assert "Waiting" in visitor.get("/notices/").text
    mail = outbox.claim()
    assert mail
    assert "On its way" in visitor.get("/notices/").text
    outbox.record_failed(mail, "The mail server refused the connection.", final=False)
    waiting = visitor.get("/notices/").text
    assert "Waiting" in waiting
    assert "The mail server refused the connection." in waiting
    tell()
    sent()
    assert "Sent" in visitor.get("/notices/").text
    tell(fact_for(scene.operator, Kind.COMMAND_FAILED))
    mail = outbox.claim()
    assert mail
    outbox.record_failed(mail, "550 no such user", final=True)
    assert "Given up 550 no such user" in visitor.get("/notices/").text


def test_without_a_mail_server_the_page_is_where_it_is_told(scene: Scene) -> None:
    tell(fact_for(scene.operator, name="hold", token="t-9"))
    mail = outbox.claim()
    assert mail
    outbox.record_sent(mail, "page")
    shown = Visitor(scene.operator).get("/notices/").text
    assert "Shown here" in shown
    assert "Nobody reported before the deadline." in shown


def test_a_notice_leads_to_what_it_tells_of(scene: Scene) -> None:
    command = scene.failed()
    shown = Visitor(scene.operator).get("/notices/").html
    assert f'href="{reverse("command", args=[command.pk])}"' in shown


def test_what_somebody_wrote_is_inert(scene: Scene) -> None:
    name = "<img src=x onerror=alert(1)>\u202e"
    tell(disabling(scene.organization.pk, name=name, reason=name))
    shown = Visitor(scene.owner).get("/notices/").html
    assert "<img" not in shown
    assert "\u202e" not in shown


def test_the_page_takes_the_same_queries_for_two_notices_and_forty(scene: Scene) -> None:
    visitor = Visitor(scene.owner)
    tell(*(fact_for(scene.operator) for _ in range(2)))
    few = queries_of(lambda: visitor.get("/notices/"))
    tell(*(fact_for(scene.operator) for _ in range(38)))
    assert queries_of(lambda: visitor.get("/notices/")) == few


def test_notices_are_paged_by_key_newest_first(scene: Scene) -> None:
    told = tell(*(fact_for(scene.operator) for _ in range(53)))
    visitor = Visitor(scene.operator)
    first = visitor.get("/notices/")
    assert first.html.count('id="n-') == 50
    assert first.has(f"n-{told[-1].pk}")
    assert f"?before={told[3].pk}" in first.html
    second = visitor.get("/notices/", before=str(told[3].pk))
    assert second.html.count('id="n-') == 3
    assert second.has("newest")
    assert visitor.get("/notices/", before="nonsense").status == 200


def test_a_poll_without_news_is_empty_and_one_with_news_is_not(scene: Scene) -> None:
    visitor = Visitor(scene.operator)
    tell(fact_for(scene.operator))
    revision = visitor.get("/notices/").revision
    assert visitor.poll("/notices/", "notices-live", revision).status == 204
    sent()
    assert visitor.poll("/notices/", "notices-live", revision).status == 200


# --- preferences --------------------------------------------------------------------------------


def test_somebody_switches_off_what_he_does_not_want(scene: Scene) -> None:
    visitor = Visitor(scene.operator)
    form = {"command_timed_out": "on", "command_nacked": "on"}
    assert visitor.post(reverse("choose_notices"), **form).to == "/notices/"
    shown = visitor.get("/notices/").html
    assert 'name="command_failed"' in shown
    assert shown.count("checked") == 2
    [membership] = Membership.objects.filter(user=scene.operator.user)
    assert membership.muted_notices == ["command_failed"]
    entry = AuditEntry.objects.get(act="notices.preferences")
    assert (entry.user, entry.before, entry.after) == (
        scene.operator.user,
        {"switchedOff": []},
        {"switchedOff": ["command_failed"]},
    )
    visitor.post(reverse("choose_notices"), **form)
    assert AuditEntry.objects.filter(act="notices.preferences").count() == 1


def test_what_waits_of_a_kind_that_is_switched_off_is_given_up(scene: Scene) -> None:
    [waiting, other] = tell(fact_for(scene.operator), fact_for(scene.operator, Kind.COMMAND_FAILED))
    Visitor(scene.operator).post(reverse("choose_notices"), command_failed="on")
    waiting.refresh_from_db()
    other.refresh_from_db()
    assert (waiting.state, waiting.error) == ("gave_up", "Switched off before it was sent.")
    assert other.state == "waiting"


def test_what_is_under_way_arrives_although_it_is_switched_off(scene: Scene) -> None:
    tell(fact_for(scene.operator))
    mail = outbox.claim()
    assert mail
    Visitor(scene.operator).post(reverse("choose_notices"))
    outbox.record_sent(mail, "mail")
    assert Notice.objects.get().state == "sent"


def test_an_owner_cannot_switch_off_that_an_endpoint_was_disabled(scene: Scene) -> None:
    owner = Visitor(scene.owner)
    owner.post(reverse("choose_notices"), endpoint_disabled="")
    assert 'name="endpoint_disabled"' not in owner.get("/notices/").html
    assert tell(disabling(scene.organization.pk))


def test_a_choice_is_a_persons_in_one_organization(scene: Scene) -> None:
    Visitor(scene.owner).post(reverse("choose_notices"))
    assert tell(fact_for(scene.operator))
    assert not tell(fact_for(scene.owner))


def test_a_choice_needs_a_form_of_ours(scene: Scene) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(scene.operator.user)
    assert client.post(reverse("choose_notices"), ALL_ON).status_code == 403
    assert client.get(reverse("choose_notices")).status_code == 405
    assert Client().get("/notices/").headers["Location"].startswith("/accounts/login/")
