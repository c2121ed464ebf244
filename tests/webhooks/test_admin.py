"""The admin's acts on endpoints, and how it shows what receivers sent."""

from __future__ import annotations

import pytest
from django_q.models import OrmQ, Schedule

from organizations.models import AuditEntry
from tests.administration import (
    act,
    changelist,
    fill_installation,
    html,
    page_of,
    staff,
    superuser,
)
from tests.factories import Scene, answer, claim, fresh, new_scene, record
from webhooks import endpoints
from webhooks.models import Attempt, Delivery, Endpoint

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]

WHY = "Maintenance"


def disabled(scene: Scene) -> Endpoint:
    act(staff(scene.owner), "disable", [scene.endpoint], confirmed="True", reason=WHY)
    return Endpoint.objects.get(pk=scene.endpoint.pk)


def enabling(scene: Scene) -> dict[str, str]:
    """What an owner answers who enables an endpoint."""
    return {"confirmed": "True", "password": scene.provisioned.members["owner"].password}


# --- disable and enable -------------------------------------------------------------------------


def test_disabling_asks_first(scene: Scene) -> None:
    asked = act(staff(scene.owner), "disable", [scene.endpoint])
    assert "Deliveries that wait end failed" in asked
    assert "Attempts on the wire cannot be recalled" in asked
    assert Endpoint.objects.get().enabled


def test_a_disabled_endpoint_says_why_and_its_deliveries_end(scene: Scene) -> None:
    command = scene.dispatched()
    endpoint = disabled(scene)
    assert (endpoint.enabled, endpoint.disabled_reason) == (False, WHY)
    assert fresh(command).failure_reason == "endpoint_disabled"
    entry = AuditEntry.objects.get(act="endpoint.disable")
    assert (entry.user, entry.via) == (scene.owner.user, "admin")


def test_an_owner_enables_again_by_an_act_that_asks_first(scene: Scene) -> None:
    endpoint, client = disabled(scene), staff(scene.owner)
    assert "Nothing that ended meanwhile is sent again." in act(client, "enable", [endpoint])
    assert not Endpoint.objects.get().enabled
    told = act(client, "enable", [endpoint], **enabling(scene))
    assert f"{endpoint.name} is enabled." in told
    assert Endpoint.objects.get().enabled
    assert AuditEntry.objects.get(act="endpoint.enable").before["enabled"] is False


def test_enabling_asks_the_owners_password_again(scene: Scene) -> None:
    endpoint, client = disabled(scene), staff(scene.owner)
    for password in ("", "guessed"):
        asked = act(client, "enable", [endpoint], confirmed="True", password=password)
        assert 'class="errorlist"' in asked
        assert not Endpoint.objects.get().enabled


@pytest.mark.parametrize("role", ["operator", "superuser"])
def test_nobody_but_an_owner_enables(scene: Scene, role: str) -> None:
    endpoint = disabled(scene)
    client = superuser() if role == "superuser" else staff(scene.operator)
    assert 'value="enable"' not in html(client, changelist(Endpoint))
    act(client, "enable", [endpoint], confirmed="True")
    assert not Endpoint.objects.get().enabled


def test_an_owner_elsewhere_is_refused_row_by_row(scene: Scene) -> None:
    """Owner of one organization and operator of another, with rows of both selected."""
    elsewhere = new_scene("Another organization")
    elsewhere.owner.organization.memberships.create(user=scene.owner.user, role="operator")
    rows = [scene.endpoint, elsewhere.endpoint]
    told = act(staff(scene.owner), "disable", rows, confirmed="True", reason=WHY)
    assert f"{scene.endpoint.name} is disabled." in told
    assert f"{elsewhere.endpoint.name}: only an owner of its organization may do that." in told
    assert Endpoint.objects.get(pk=elsewhere.endpoint.pk).enabled


def test_enabling_what_is_enabled_changes_nothing(scene: Scene) -> None:
    told = act(staff(scene.owner), "enable", [scene.endpoint], **enabling(scene))
    assert "was enabled before." in told
    assert not AuditEntry.objects.filter(act="endpoint.enable").exists()


# --- edit ---------------------------------------------------------------------------------------

EDIT = {"name": "Renamed", "description": "", "event_types": "", "max_in_flight": ""}


def test_an_owners_edit_starts_the_counters_from_zero_and_is_on_record(scene: Scene) -> None:
    scene.failed()
    before = Endpoint.objects.get().health_since
    staff(scene.owner).post(page_of(scene.endpoint), EDIT)
    endpoint = Endpoint.objects.get()
    assert endpoint.name == "Renamed"
    assert endpoint.health_since > before
    entry = AuditEntry.objects.get(act="endpoint.edit")
    assert (entry.before["name"], entry.after["name"]) == (scene.endpoint.name, "Renamed")


def test_saving_without_a_change_counts_on(scene: Scene) -> None:
    form = {**EDIT, "name": scene.endpoint.name}
    staff(scene.owner).post(page_of(scene.endpoint), form)
    assert Endpoint.objects.get().health_since == scene.endpoint.health_since


def test_where_webhooks_go_is_no_field_to_edit(scene: Scene) -> None:
    form = {**EDIT, "url": "http://169.254.169.254/", "policy": "event", "enabled": ""}
    staff(scene.owner).post(page_of(scene.endpoint), form)
    endpoint = Endpoint.objects.get()
    assert (endpoint.url, endpoint.policy, endpoint.enabled) == (
        scene.endpoint.url,
        scene.endpoint.policy,
        True,
    )


@pytest.mark.parametrize("limit", ["0", "-1", "1001"])
def test_a_limit_that_would_hold_deliveries_for_ever_is_refused(scene: Scene, limit: str) -> None:
    response = staff(scene.owner).post(page_of(scene.endpoint), {**EDIT, "max_in_flight": limit})
    assert "Ensure this value is" in response.content.decode()
    assert Endpoint.objects.get().max_in_flight is None


def test_event_types_are_checked(scene: Scene) -> None:
    client = staff(scene.owner)
    refused = client.post(page_of(scene.endpoint), {**EDIT, "event_types": "command.*,No Type"})
    assert "Write a type as command.failed" in refused.content.decode()
    client.post(page_of(scene.endpoint), {**EDIT, "event_types": "command.*,endpoint.disabled"})
    assert Endpoint.objects.get().event_types == ["command.*", "endpoint.disabled"]


# --- archive ------------------------------------------------------------------------------------


def test_archiving_asks_first_and_is_for_good(scene: Scene) -> None:
    client = staff(scene.owner)
    assert "Their history stays." in act(client, "archive", [scene.endpoint])
    assert Endpoint.objects.get().archived_at is None
    assert "is archived." in act(client, "archive", [scene.endpoint], confirmed="True")
    endpoint = Endpoint.objects.get()
    assert endpoint.archived_at
    assert "Register a new one." in act(client, "enable", [endpoint], **enabling(scene))
    assert client.post(page_of(endpoint), EDIT).status_code == 403
    assert not Endpoint.objects.get().enabled


def test_headers_are_shown_by_name(scene: Scene) -> None:
    endpoints.edit(scene.owner, scene.endpoint.pk, {"headers": {"X-Key": "confidential"}})
    shown = html(staff(scene.owner), page_of(scene.endpoint))
    assert "X-Key" in shown
    ciphertext = Endpoint.objects.get().headers_ciphertext
    assert "confidential" not in shown
    assert ciphertext not in shown


# --- what is shown ------------------------------------------------------------------------------


def test_an_endpoint_shows_its_last_outcomes_and_leads_to_the_console(scene: Scene) -> None:
    scene.failed()
    scene.delivered()
    shown = html(staff(scene.owner), changelist(Endpoint))
    assert "1 of 2 failed" in shown
    assert f'href="/endpoints/{scene.endpoint.pk}/"' in shown


HOSTILE = '<img src=x onerror=alert(1)>\x1b[31m\u202egpj</pre><script src="/x.js"></script>'


def test_what_a_receiver_sent_is_inert(scene: Scene) -> None:
    delivery = scene.send()
    record(
        answer(
            claim(delivery),
            302,
            error=HOSTILE,
            error_kind="protocol",
            response_excerpt=HOSTILE.encode() + b"\xff",
            retry_after=HOSTILE,
            location=f"javascript:{HOSTILE}",
        )
    )
    client = staff(scene.owner)
    attempt = Attempt.objects.get()
    for shown in (html(client, changelist(Attempt)), html(client, page_of(attempt))):
        assert "<img src=x" not in shown
        assert '/x.js"></script>' not in shown
        assert 'href="javascript:' not in shown
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    assert "&lt;img src=x" in html(client, page_of(attempt))


def test_long_texts_are_cut(scene: Scene) -> None:
    delivery = scene.send(body=b'"' + b"x" * 100_000 + b'"')
    assert len(html(staff(scene.owner), page_of(delivery.event))) < 30_000


def test_an_attempt_shows_its_lateness_and_duration(scene: Scene) -> None:
    scene.failed()
    shown = html(staff(scene.owner), changelist(Attempt))
    for field in ("lateness", "duration"):
        assert f'<td class="field-{field}">' in shown


def test_an_attempt_on_the_wire_has_no_times_it_does_not_have(scene: Scene) -> None:
    scene.on_the_wire()
    client = staff(scene.owner)
    for shown in (html(client, changelist(Attempt)), html(client, page_of(Attempt.objects.get()))):
        assert "on the wire" in shown
        assert "None" not in shown
        assert "1970" not in shown


def test_a_delivery_is_found_by_the_id_of_its_command(scene: Scene) -> None:
    wanted, other = scene.dispatched(), scene.dispatched()
    shown = html(staff(scene.owner), f"{changelist(Delivery)}?q={wanted.pk}")
    assert str(wanted.delivery_id) in shown
    assert str(other.delivery_id) not in shown


def test_a_search_for_what_is_no_id_finds_nothing(scene: Scene) -> None:
    scene.dispatched()
    assert "0 deliveries" in html(staff(scene.owner), f"{changelist(Delivery)}?q=nonsense")


def test_the_attempts_of_an_endpoint_are_one_list(scene: Scene) -> None:
    scene.failed()
    other = scene.another_endpoint("event")
    record(answer(claim(scene.send(other)), 503))
    shown = html(staff(scene.owner), f"{changelist(Attempt)}?endpoint={other.pk}")
    assert "1 attempt" in shown


# --- the cluster --------------------------------------------------------------------------------


def test_schedules_in_free_form_are_refused(scene: Scene) -> None:
    fill_installation(scene.owner.user)
    client, schedule = superuser(), Schedule.objects.get()
    form = {"func": "os.system", "schedule_type": "O", "repeats": "-1"}
    assert client.post(changelist(Schedule) + "add/", form).status_code == 403
    assert client.post(page_of(schedule), form).status_code == 403
    assert Schedule.objects.get().func == "some.function"


def test_queued_tasks_are_neither_edited_nor_run_again(scene: Scene) -> None:
    fill_installation(scene.owner.user)
    client, queued = superuser(), OrmQ.objects.get()
    assert client.post(page_of(queued), {"key": "another"}).status_code == 403
    assert "resubmit" not in html(client, changelist(OrmQ))
