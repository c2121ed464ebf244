"""The list of commands: what a row says, filters in the address, pages that stand still, polls."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from commands import datasets, lifecycle
from commands.console.rows import PAGE_SIZE, ahead_of
from commands.errors import DispatchRefused
from commands.rules.states import State
from organizations.provisioning import provision
from tests.factories import Scene, fail_with
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


def test_no_match_offers_to_clear_and_no_command_teaches_the_next_step(scene: Scene) -> None:
    visitor = Visitor(scene.operator)
    assert visitor.get("/commands/").has("issue-first")
    unmatched = visitor.get("/commands/", q="nothing-like-it")
    assert unmatched.has("clear-filters")
    assert not unmatched.has("issue-first")


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


def test_the_list_takes_the_same_queries_for_three_rows_and_thirty(scene: Scene) -> None:
    visitor = Visitor(scene.viewer)
    for _ in range(3):
        scene.delivered()
    page, poll = (
        (lambda: visitor.get("/commands/")),
        lambda: visitor.poll("/commands/", "commands-live"),
    )
    few = queries_of(page), queries_of(poll)
    for state in [*State] * 3 + [State.FAILED] * 3:
        scene.in_state(state)
    assert (queries_of(page), queries_of(poll)) == few
    assert few[1] <= 6


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
