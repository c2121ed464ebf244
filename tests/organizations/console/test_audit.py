"""The Audit page: who did what, from where, and what changed; for owners alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest
from django.urls import reverse

from commands import datasets
from organizations import keys, members, paging
from organizations.actors import Actor
from organizations.models import AuditEntry
from organizations.rules import roles
from tests.factories import Scene, new_scene
from tests.visitors import Visitor, queries_of
from webhooks import endpoints

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]


def at(visitor: Visitor, **query: str) -> str:
    """The words of the table, without those of the filters."""
    page = visitor.get("/audit/", **query)
    assert page.status == 200
    page.html = page.html.partition('id="results"')[2]
    return page.text


def test_an_owner_reads_who_did_what_to_what_and_from_where(scene: Scene) -> None:
    operator = Actor.of(
        scene.provisioned.members[roles.OPERATOR].membership, "console", "203.0.113.9"
    )
    datasets.disarm(operator, scene.dataset.pk)
    shown = at(Visitor(scene.owner))
    assert f"{operator.user.email} Disarmed the dataset Dataset armed yes → became no" in shown
    assert "Console 203.0.113.9" in shown


def test_a_key_is_named_beside_its_person(scene: Scene) -> None:
    text = scene.provisioned.members[roles.OPERATOR].api_key
    actor = keys.authenticate(text, "192.0.2.7")
    datasets.disarm(actor, scene.dataset.pk)
    shown = at(Visitor(scene.owner))
    assert f"first key of the operator {text[:12]}…" in shown
    assert "API key 192.0.2.7" in shown


@pytest.mark.parametrize("role", [roles.OPERATOR, roles.VIEWER])
def test_nobody_but_an_owner_reads_it(scene: Scene, role: str) -> None:
    visitor = Visitor(scene.provisioned.actor(role))
    assert visitor.get("/audit/").status == 403
    assert visitor.poll("/audit/", "audit-live").status == 403
    assert "nav-audit" not in visitor.get("/datasets/").html


def test_nothing_of_another_organization_is_shown(scene: Scene) -> None:
    other = new_scene("Another")
    datasets.create_experiment(other.owner, "Elsewhere")
    visitor = Visitor(scene.owner)
    assert "Elsewhere" not in at(visitor)
    assert other.owner.user.email not in visitor.get("/audit/").text
    stranger = visitor.get("/audit/", who=str(other.owner.user.pk))
    assert "not understood: who" in stranger.text
    assert other.owner.user.email not in stranger.text


def test_what_was_done_leads_to_its_page(scene: Scene) -> None:
    command = scene.issued()
    added = members.add(scene.owner, "anna@example.com", roles.VIEWER).membership
    html = Visitor(scene.owner).get("/audit/").html
    for address in (
        reverse("command", args=[command.pk]),
        reverse("endpoint", args=[scene.endpoint.pk]),
        f"/commands/?dataset={scene.dataset.pk}",
        f"/commands/?experiment={scene.experiment.pk}",
        f"/members/#m-{added.pk}",
    ):
        assert f'href="{address}"' in html


def test_what_is_gone_keeps_its_name_and_leads_nowhere(scene: Scene) -> None:
    added = members.add(scene.owner, "anna@example.com", roles.VIEWER).membership
    members.remove(scene.owner, added.pk)
    page = Visitor(scene.owner).get("/audit/")
    assert "Removed the member anna@example.com role viewer → became —" in page.text
    assert f"#m-{added.pk}" not in page.html


def test_only_what_changed_is_told(scene: Scene) -> None:
    endpoints.edit(scene.owner, scene.endpoint.pk, {"description": "Moved"})
    shown = at(Visitor(scene.owner), act="endpoint.edit")
    assert "description — → became Moved" in shown
    assert "policy" not in shown


def test_a_long_list_of_changes_is_behind_a_disclosure(scene: Scene) -> None:
    page = Visitor(scene.owner).get("/audit/", act="endpoint.create")
    entry = AuditEntry.objects.get(act="endpoint.create")
    assert page.has(f"more-{entry.pk}")


def test_no_secret_is_ever_in_it(scene: Scene) -> None:
    created = endpoints.create(
        scene.owner,
        endpoints.NewEndpoint(
            "Gate", "https://93.184.216.34/", headers={"Authorization": "Bearer 5ecret"}
        ),
    )
    rotated = endpoints.rotate_secret(scene.owner, created.endpoint.pk)
    member = scene.provisioned.members[roles.VIEWER].membership
    key, text = keys.make(scene.owner, member.pk, "a key", ["commands:read"])
    keys.revoke(scene.owner, key)
    html = Visitor(scene.owner).get("/audit/").html
    for secret in (created.secret, rotated.secret, text, text[13:], key.digest, "5ecret"):
        assert secret not in html
        assert secret.removeprefix("whsec_") not in str(list(AuditEntry.objects.values()))


def test_what_somebody_wrote_is_inert(scene: Scene) -> None:
    name = "<img src=x onerror=alert(1)>\u202e"
    datasets.create_experiment(scene.owner, name)
    endpoints.edit(scene.owner, scene.endpoint.pk, {"description": name})
    html = Visitor(scene.owner).get("/audit/").html
    assert "<img" not in html
    assert "\u202e" not in html


# --- filters ------------------------------------------------------------------------------------


def test_filters_stand_in_the_address_and_narrow(scene: Scene) -> None:
    scene.issued(name="turn_left")
    visitor = Visitor(scene.owner)
    assert "turn_left" in at(visitor, about="commands")
    assert "turn_left" not in at(visitor, about="endpoints")
    assert "turn_left" in at(visitor, act="command.issue")
    assert "turn_left" in at(visitor, who=str(scene.operator.user.pk))
    assert "turn_left" not in at(visitor, who=str(scene.owner.user.pk))
    page = visitor.get("/audit/", about="commands", act="command.issue")
    assert 'value="command.issue"\n              selected' in page.html
    assert "about=commands&amp;act=command.issue" in page.html


def test_one_things_history_is_a_filter(scene: Scene) -> None:
    scene.issued(name="turn_left")
    shown = at(Visitor(scene.owner), target=str(scene.dataset.pk))
    assert f"Only what was done to {scene.dataset.pk}" in shown
    assert "Armed the dataset" in shown
    assert "turn_left" not in shown


def test_times_are_read_in_the_zone_that_the_address_names(scene: Scene) -> None:
    AuditEntry.objects.create(
        organization=scene.organization,
        at=datetime(2030, 1, 31, 12, 30, tzinfo=UTC),
        act="dataset.arm",
        target_type="dataset",
        target_id=str(scene.dataset.pk),
        via="engine",
    )
    visitor = Visitor(scene.owner)
    window = {"since": "2030-01-31T12:00", "until": "2030-01-31T13:00"}
    assert "Armed the dataset" in at(visitor, **window)
    assert "Armed the dataset" not in at(visitor, zone="Europe/Berlin", **window)
    assert "The console itself" in at(visitor, **window)


@pytest.mark.parametrize(
    "query",
    [
        {"who": "nonsense"},
        {"act": "rocket.launch"},
        {"about": "everything"},
        {"since": "whenever"},
        {"until": "9999-99-99T00:00"},
        {"zone": "Nowhere/Never"},
        {"before": "-1"},
        {"before": "9" * 40},
        {"target": "x" * 65},
    ],
)
def test_what_is_not_understood_narrows_nothing(scene: Scene, query: dict[str, str]) -> None:
    page = Visitor(scene.owner).get("/audit/", **query)
    assert page.status == 200
    assert "Armed the dataset" in page.text


def test_no_match_is_told_from_nothing_yet(scene: Scene) -> None:
    visitor = Visitor(scene.owner)
    page = visitor.get("/audit/", act="endpoint.archive")
    assert page.has("no-match")
    assert page.has("clear-filters")
    assert visitor.get("/audit/", before="1").has("empty")


def test_a_look_that_ended_says_how_far_it_went(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.issued(name="turn_left")
    for _ in range(5):
        datasets.disarm(scene.operator, scene.dataset.pk)
        datasets.arm(scene.operator, scene.dataset.pk)
    monkeypatch.setattr(paging, "LOOKED_AT", 5)
    visitor = Visitor(scene.owner)
    page = visitor.get("/audit/", about="commands")
    assert page.has("no-match-yet")
    older = AuditEntry.objects.filter(organization=scene.organization).order_by("-pk")[4]
    assert f"?about=commands&amp;before={older.pk}" in page.html
    assert visitor.get("/audit/", about="commands", before=str(older.pk)).has("no-match-yet")


# --- pages and polls ----------------------------------------------------------------------------


def write(scene: Scene, count: int) -> list[AuditEntry]:
    return AuditEntry.objects.bulk_create(
        AuditEntry(
            organization=scene.organization,
            user=scene.operator.user,
            via="console",
            act="dataset.arm",
            target_type="dataset",
            target_id=str(scene.dataset.pk),
        )
        for _ in range(count)
    )


def test_entries_are_paged_by_key_newest_first(scene: Scene) -> None:
    written = write(scene, 55)
    visitor = Visitor(scene.owner)
    first = visitor.get("/audit/", who=str(scene.operator.user.pk))
    assert first.html.count('id="a-') == 50
    assert first.has(f"a-{written[-1].pk}")
    query = urlencode({"who": scene.operator.user.pk, "before": written[5].pk}).replace(
        "&", "&amp;"
    )
    assert f"?{query}" in first.html
    second = visitor.get("/audit/", who=str(scene.operator.user.pk), before=str(written[5].pk))
    assert second.html.count('id="a-') == 5
    assert second.has("newest")


def test_the_page_takes_the_same_queries_for_three_entries_and_sixty(scene: Scene) -> None:
    visitor = Visitor(scene.owner)
    query = {"since": f"{datetime.now(UTC) - timedelta(hours=1):%Y-%m-%dT%H:%M}"}
    write(scene, 3)
    few = queries_of(lambda: visitor.get("/audit/", **query))
    write(scene, 60)
    assert queries_of(lambda: visitor.get("/audit/", **query)) <= few


def test_a_poll_without_news_is_empty_and_one_with_news_is_not(scene: Scene) -> None:
    visitor = Visitor(scene.owner)
    revision = visitor.get("/audit/").revision
    assert visitor.poll("/audit/", "audit-live", revision).status == 204
    scene.issued(name="turn_left")
    news = visitor.poll("/audit/", "audit-live", revision)
    assert news.status == 200
    assert "turn_left" in news.text
    assert "<form" not in news.html


def test_an_entry_cannot_be_touched_by_any_request(scene: Scene) -> None:
    visitor = Visitor(scene.owner)
    assert visitor.post("/audit/").status == 405
