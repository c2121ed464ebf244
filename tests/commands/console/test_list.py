"""The list of commands: what a row says, filters in the address, pages that stand still, polls."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest

from commands import datasets, issuing, lifecycle
from commands.console import rows
from commands.console.filters import FilterForm
from commands.console.rows import PAGE_SIZE, ahead_of
from commands.errors import DispatchRefused
from commands.rules.states import State
from organizations import keys
from organizations.patience import TookTooLong
from organizations.provisioning import provision
from tests.factories import Scene, fail_with, new_scene
from tests.visitors import Page, Visitor, queries_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]

TIME = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def waiting_for(state: str, **facts: Any) -> str:
    nothing = dict.fromkeys(
        ["dispatch_refusal", "failure_reason", "ack_deadline", "delivery__next_attempt_at"]
    )
    return ahead_of({"state": state, "delivery__attempts": 1} | nothing | facts).words


@pytest.mark.parametrize(
    ("state", "facts", "said"),
    [
        (State.LOGGED, {}, "to be dispatched"),
        (State.LOGGED, {"dispatch_refusal": "dataset_unarmed"}, "dataset not armed"),
        (State.QUEUED, {"delivery__next_attempt_at": TIME}, "attempt 2"),
        (State.QUEUED, {}, "on the wire"),
        (State.DELIVERED, {"ack_deadline": TIME}, "ack deadline"),
        (State.FAILED, {"failure_reason": "endpoint_disabled"}, "endpoint disabled"),
        (State.TIMED_OUT, {}, "outcome unknown"),
        (State.ACKED, {}, ""),
        (State.RETRACTED, {}, ""),
    ],
)
def test_what_comes_next_for_a_command(state: str, facts: dict[str, Any], said: str) -> None:
    assert waiting_for(state, **facts) == said


@pytest.mark.parametrize("state", State)
def test_each_state_has_its_own_word_and_filter(scene: Scene, state: State) -> None:
    command = scene.in_state(state)
    other = scene.in_state(State.LOGGED if state != State.LOGGED else State.ACKED)
    shown = Visitor(scene.viewer).get("/commands/", state=state)
    assert command.client_token in shown.text
    assert other.client_token not in shown.text
    assert state.value.replace("_", " ").capitalize() in shown.text


def test_a_row_says_how_far_the_attempts_are(scene: Scene) -> None:
    fail_with(scene.dispatched(), [503, 503])
    shown = Visitor(scene.viewer).get("/commands/")
    assert "2/5" in shown.text
    assert "attempt 3" in shown.text
    assert "data-until=" in shown.html


def test_a_refused_dispatch_stands_out(scene: Scene) -> None:
    command = scene.issued()
    datasets.disarm(scene.operator, scene.dataset.pk)
    with pytest.raises(DispatchRefused):
        lifecycle.dispatch(scene.operator, command.pk)
    assert "Refused" in Visitor(scene.viewer).get("/commands/").text


def test_search_finds_an_id_or_the_start_of_a_token(scene: Scene) -> None:
    wanted, other = scene.issued(token="dock-7"), scene.issued(token="undock-7")
    visitor = Visitor(scene.viewer)
    for text in ("dock", str(wanted.pk)):
        shown = visitor.get("/commands/", q=text).text
        assert wanted.client_token in shown
        assert other.client_token not in shown.split()


def test_time_narrows_and_a_time_that_is_none_says_so(scene: Scene) -> None:
    command, visitor = scene.issued(), Visitor(scene.viewer)
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")
    assert command.client_token in visitor.get("/commands/", until=tomorrow).text
    assert "No command matches" in visitor.get("/commands/", since=tomorrow).text
    wrong = visitor.get("/commands/", since="yesterday")
    assert wrong.status == 200
    assert "not understood" in wrong.text


def test_a_time_is_meant_in_the_zone_that_the_address_names(scene: Scene) -> None:
    command, visitor = scene.issued(), Visitor(scene.viewer)
    # Kiritimati is 14 hours ahead: an hour from now in UTC was 13 hours ago there.
    soon = (command.issued_at + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M")
    assert command.client_token not in visitor.get("/commands/", since=soon).text
    there = visitor.get("/commands/", since=soon, zone="Pacific/Kiritimati")
    assert command.client_token in there.text
    assert "UTC" in there.text
    nowhere = visitor.get("/commands/", since=soon, zone="Mars/Olympus_Mons")
    assert command.client_token not in nowhere.text


def test_within_moves_with_the_clock(scene: Scene) -> None:
    form = FilterForm({"within": "1h"})
    assert form.is_valid()
    assert form.filters(TIME).since == TIME - timedelta(hours=1)
    both = FilterForm({"within": "1h", "since": "2026-01-31T11:30"})
    assert both.is_valid()
    assert both.filters(TIME).since == TIME - timedelta(minutes=30)


def test_issuer_is_a_person_or_a_key(scene: Scene) -> None:
    key, text = keys.create_key(scene.organization, scene.owner.user, "fleet gateway")
    by_key = issuing.issue(keys.authenticate(text, None), scene.dataset, "by-key", "n", {}).command
    in_person = issuing.issue(scene.owner, scene.dataset, "in-person", "n", {}).command
    scene.issued(token="operator-s")
    visitor, mine = Visitor(scene.viewer), [by_key, in_person]

    owner_s = visitor.get("/commands/", issuer=f"person-{scene.owner.user.pk}")
    assert tokens(owner_s, mine) == ["by-key", "in-person"]
    assert "operator-s" not in owner_s.text
    assert f"Issuer: {scene.owner.user.email}" in owner_s.text
    key_s = visitor.get("/commands/", issuer=f"key-{key.pk}")
    assert tokens(key_s, mine) == ["by-key"]
    assert f"Issuer: fleet gateway · cck_{key.prefix}" in key_s.text
    for wrong in ("nobody", f"robot-{key.pk}", "key-1"):
        assert "not understood: issuer" in visitor.get("/commands/", issuer=wrong).text


def test_endpoint_is_where_commands_went(scene: Scene) -> None:
    there, logged, visitor = scene.dispatched(), scene.issued(), Visitor(scene.viewer)
    other = scene.another_endpoint(name="The other one")
    shown = visitor.get("/commands/", endpoint=str(scene.endpoint.pk))
    assert tokens(shown, [there, logged]) == [there.client_token]
    assert visitor.get("/commands/", endpoint=str(other.pk)).has("no-match")


def test_a_filter_in_force_is_named_and_dropped_alone(scene: Scene) -> None:
    scene.dispatched()
    query = {"endpoint": str(scene.endpoint.pk), "state": "queued", "since": "2026-01-01T00:00"}
    shown = Visitor(scene.viewer).get("/commands/", **query)
    assert f"Endpoint: {scene.endpoint.name}" in shown.text
    assert "Since 2026-01-01 00:00:00 UTC" in shown.text
    assert drop_of(shown, "endpoint") == "/commands/?since=2026-01-01T00%3A00&state=queued"
    # What the controls show already is not said twice.
    assert not drop_of(shown, "state")


def drop_of(page: Page, name: str) -> str:
    """Where the list is without this filter; empty when it is not offered."""
    link = re.search(rf'href="([^"]*)"\s+data-drop="{name}"', page.html)
    if not link:
        return ""
    path, _, query = html.unescape(link[1]).partition("?")
    return f"{path}?{urlencode(sorted(parse_qsl(query)))}"


def test_what_is_not_offered_any_more_stays_chosen_and_has_no_name(scene: Scene) -> None:
    scene.issued()
    stranger = new_scene("Elsewhere")
    shown = Visitor(scene.viewer).get(
        "/commands/",
        issuer=f"person-{stranger.owner.user.pk}",
        endpoint=str(stranger.endpoint.pk),
        dataset=str(stranger.dataset.pk),
    )
    assert "Issuer: unknown" in shown.text
    assert f'<option value="{stranger.endpoint.pk}"' in shown.html
    assert stranger.owner.user.email not in shown.html
    assert stranger.endpoint.name not in shown.text


def test_no_match_names_the_filters_and_no_command_teaches_the_next_step(scene: Scene) -> None:
    visitor = Visitor(scene.operator)
    assert visitor.get("/commands/").has("issue-first")
    unmatched = visitor.get("/commands/", q="nothing-like-it", state="failed")
    assert unmatched.has("clear-filters")
    assert not unmatched.has("issue-first")
    assert "Token or id: nothing-like-it" in unmatched.text
    assert drop_of(unmatched, "q") == "/commands/?state=failed"
    polled = visitor.poll("/commands/", "commands-live", q="nothing-like-it")
    assert drop_of(polled, "q") == "/commands/?"


def test_beyond_the_oldest_nothing_is_older(scene: Scene) -> None:
    first = scene.issued()
    shown = Visitor(scene.operator).get("/commands/", before=str(first.pk))
    assert shown.has("nothing-older")
    assert not shown.has("issue-first")


@pytest.mark.parametrize("target", ["results", "commands-live"])
def test_a_search_that_walks_too_long_is_not_asked_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    def never(*_: object) -> None:
        raise TookTooLong

    monkeypatch.setattr(rows, "page_of", never)
    shown = Visitor(scene.viewer).poll(
        "/commands/", target, state="acked", since="2026-01-01T00:00"
    )
    assert shown.status == 200
    assert "This would take too long to find" in shown.text
    assert 'href="/commands/?state=acked&amp;within=1h"' in shown.html
    assert "every 2s" not in shown.html
    assert shown.response.headers["HX-Retarget"] == "#results"


def test_pages_hold_still_while_commands_arrive(scene: Scene) -> None:
    old = [scene.issued(token=f"old-{n:02}") for n in range(PAGE_SIZE + 3)]
    visitor = Visitor(scene.viewer)
    first = visitor.get("/commands/")
    cursor = str(old[3].pk)
    assert f"before={cursor}" in first.html
    second = visitor.get("/commands/", before=cursor)
    assert tokens(second, old) == ["old-00", "old-01", "old-02"]
    newcomer = scene.issued(token="newcomer")
    polled = visitor.poll(
        "/commands/", "commands-live", second.revision, before=cursor, seen=str(old[-1].pk)
    )
    assert tokens(polled, old) == ["old-00", "old-01", "old-02"]
    assert newcomer.client_token not in polled.text
    assert "1 new" in polled.text


def tokens(page: Page, commands: list[Any]) -> list[str]:
    return [c.client_token for c in commands if f">{c.client_token}<" in page.html]


def test_a_poll_without_news_is_empty(scene: Scene) -> None:
    scene.dispatched()
    visitor = Visitor(scene.viewer)
    revision = visitor.get("/commands/").revision
    assert visitor.poll("/commands/", "commands-live", revision).status == 204


def test_a_poll_with_news_is_the_rows_alone(scene: Scene) -> None:
    command, visitor = scene.dispatched(), Visitor(scene.viewer)
    revision = visitor.get("/commands/").revision
    lifecycle.retract(scene.operator, command.pk)
    polled = visitor.poll("/commands/", "commands-live", revision)
    assert polled.status == 200
    assert "Retracted" in polled.text
    assert "<html" not in polled.html
    assert polled.revision not in ("", revision)
    assert visitor.poll("/commands/", "commands-live", polled.revision).status == 204


def test_a_change_of_filter_brings_the_results_and_the_address_serves_the_page(
    scene: Scene,
) -> None:
    visitor = Visitor(scene.viewer)
    fragment = visitor.poll("/commands/", "results", state="acked")
    assert "<html" not in fragment.html
    assert 'hx-get="/commands/?state=acked"' in fragment.html
    assert "<html" in visitor.get("/commands/", state="acked").html


@pytest.mark.parametrize("narrowing", ["nothing", "everything"])
def test_the_list_takes_the_same_queries_for_three_rows_and_sixty(
    scene: Scene, narrowing: str
) -> None:
    visitor = Visitor(scene.viewer)
    query = {
        "experiment": str(scene.experiment.pk),
        "dataset": str(scene.dataset.pk),
        "endpoint": str(scene.endpoint.pk),
        "issuer": f"person-{scene.operator.user.pk}",
        "within": "1h",
        "q": "token",
    }
    asked = query if narrowing == "everything" else {}
    page, poll = (
        (lambda: visitor.get("/commands/", **asked)),
        (lambda: visitor.poll("/commands/", "commands-live", **asked)),
    )
    for _ in range(3):
        scene.delivered()
    few = queries_of(page), queries_of(poll)
    for state in State:
        scene.in_state(state)
    for _ in range(49):
        scene.dispatched()
    assert (queries_of(page), queries_of(poll)) == few
    # A poll asks who comes and reads the rows; a search has its limit set and taken back.
    assert few[1] <= {"nothing": 6, "everything": 11}[narrowing]


def test_what_others_wrote_is_inert(scene: Scene) -> None:
    scene.issued(token="<script>alert(1)</script>", name="<img src=x onerror=alert(1)>\u202e")
    shown = Visitor(scene.viewer).get("/commands/")
    assert "<script>alert" not in shown.html
    assert "<img" not in shown.html
    assert "\u202e" not in shown.html


def test_a_viewer_sees_no_way_to_issue(scene: Scene) -> None:
    assert not Visitor(scene.viewer).get("/commands/").has("issue")
    assert Visitor(scene.operator).get("/commands/").has("issue")


def test_nothing_of_another_organization_is_listed(scene: Scene) -> None:
    command = scene.issued()
    stranger = Visitor(provision("Elsewhere").actor("owner"))
    for query in ({}, {"q": str(command.pk)}, {"dataset": str(scene.dataset.pk)}):
        assert command.client_token not in stranger.get("/commands/", **query).text


def test_the_list_of_one_dataset_says_whether_it_is_armed(scene: Scene) -> None:
    scene.issued()
    operator, only = Visitor(scene.operator), {"dataset": str(scene.dataset.pk)}
    page = operator.get("/commands/", **only)
    assert page.has("armed-banner")
    assert not operator.get("/commands/").has("armed-banner")
    datasets.disarm(scene.owner, scene.dataset.pk)
    address = f"/commands/?{urlencode(only)}"
    disarmed = operator.poll(address, "commands-live", page.revision)
    assert disarmed.has("unarmed-banner")
    assert operator.poll(address, "commands-live", disarmed.revision).status == 204


def test_another_organization_s_dataset_has_no_banner(scene: Scene) -> None:
    other = new_scene("Southwind")
    page = Visitor(scene.operator).get("/commands/", dataset=str(other.dataset.pk))
    assert not page.has("armed-banner")
    assert not page.has("unarmed-banner")
