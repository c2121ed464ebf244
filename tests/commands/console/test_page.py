"""A command's page: state, diagnosis, acts with their obstacles, attempts, timeline."""

from __future__ import annotations

import re

import pytest

from commands import datasets, issuing, lifecycle, settling
from commands.models import Command
from commands.rules.reports import Outcome
from commands.rules.states import State
from tests.factories import Scene, answer, claim, fail_with, record
from tests.visitors import Page, Visitor, queries_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]


def page_of(command: Command) -> str:
    return f"/commands/{command.pk}/"


def seen(scene: Scene, command: Command) -> Page:
    return Visitor(scene.operator).get(page_of(command))


def obstacle(page: Page, act: str) -> str:
    found = re.search(rf'id="{act}-why"[^>]*>([^<]*)<', page.html)
    return found[1].strip() if found else ""


@pytest.mark.parametrize(
    ("state", "possible"),
    [
        (State.LOGGED, {"dispatch", "retract"}),
        (State.QUEUED, {"retract"}),
        (State.DELIVERED, {"retract"}),
        (State.FAILED, {"retract", "reissue"}),
        (State.ACKED, {"retract"}),
        (State.NACKED, {"retract", "reissue"}),
        (State.TIMED_OUT, {"retract", "reissue"}),
        (State.RETRACTED, {"reissue"}),
    ],
)
def test_acts_that_are_not_possible_are_shown_with_the_reason(
    scene: Scene, state: State, possible: set[str]
) -> None:
    page = seen(scene, scene.in_state(state))
    acts = {"dispatch", "retract", "reissue"}
    assert all(page.has(act) for act in acts)
    assert {act for act in acts if not obstacle(page, act)} == possible


def test_an_unarmed_dataset_stands_in_the_way_of_a_dispatch(scene: Scene) -> None:
    command = scene.issued()
    assert seen(scene, command).has("armed-banner")
    datasets.disarm(scene.operator, scene.dataset.pk)
    page = seen(scene, command)
    assert "not armed" in obstacle(page, "dispatch")
    assert not page.has("armed-banner")
    assert page.has("unarmed-banner")
    assert page.has("arm")


def test_a_viewer_reads_everything_and_sees_no_act(scene: Scene) -> None:
    page = Visitor(scene.viewer).get(page_of(scene.delivered()))
    assert "As sent" in page.text
    assert not any(page.has(act) for act in ("dispatch", "retract", "reissue", "disarm", "arm"))


def test_the_next_attempt_and_the_deadline_count_down_apart(scene: Scene) -> None:
    command = scene.dispatched()
    fail_with(command, [503])
    page = seen(scene, command)
    assert page.html.count('class="countdown huge"') == 2
    assert "Attempt 2 of 5" in page.text
    assert "Ack deadline" in page.text


def test_a_failure_is_explained_and_each_attempt_shown(scene: Scene) -> None:
    command = scene.dispatched()
    fail_with(command, [500, 502, 503, 500, 500])
    page = seen(scene, command)
    assert "answered all 5 attempts with an error (500, 502, 503)" in page.text
    assert "5 of 5" in page.text
    assert page.html.count('class="marker failed"') == 5


def test_what_the_receiver_sent_is_inert(scene: Scene) -> None:
    command, attempt = scene.on_the_wire()
    hostile = b'<div hx-post="/endpoints/1/delete" hx-trigger="load">\x1b[31m\xe2\x80\xae</pre><script>x()'
    record(
        answer(
            attempt,
            302,
            response_excerpt=hostile,
            location="javascript:alert(1)<b>",
            retry_after="<i>soon</i>",
        )
    )
    page = seen(scene, command)
    for markup in ('hx-post="/endpoints/1', "<script>x", "<b>", "<i>soon", "\x1b", "\u202e"):
        assert markup not in page.html
    assert 'href="javascript' not in page.html
    assert "⟨U+202E⟩" in page.text


def test_the_timeline_says_who_and_why(scene: Scene) -> None:
    command = scene.delivered()
    lifecycle.acknowledge(scene.operator, command.pk, Outcome.REJECTION, "obstacle ahead")
    lifecycle.retract(scene.operator, command.pk, "Wrong berth")
    text = seen(scene, command).text
    assert "obstacle ahead" in text
    assert text.count("Wrong berth") == 2
    assert f"{scene.operator.user.email} on the command line" in text


def test_a_late_report_is_told_as_kept(scene: Scene) -> None:
    command = scene.overdue()
    settling.time_out_overdue()
    with pytest.raises(Exception, match="deadline has passed"):
        lifecycle.acknowledge(scene.operator, command.pk, Outcome.SUCCESS)
    text = seen(scene, command).text
    assert "Report of success kept" in text
    assert "Timed out: the deadline passed without a report" in text


def test_a_reissue_and_its_original_lead_to_each_other(scene: Scene) -> None:
    original = scene.failed()
    again = issuing.reissue(scene.operator, original.pk, "again").command
    assert page_of(again) in seen(scene, original).html
    assert page_of(original) in seen(scene, again).html


def test_a_poll_without_news_is_empty_and_every_kind_of_news_is_noticed(scene: Scene) -> None:
    command, visitor = scene.dispatched(), Visitor(scene.operator)
    path = page_of(command)
    revisions = [visitor.get(path).revision]

    def poll() -> Page:
        return visitor.poll(path, "command-live", revisions[-1])

    def attempt_ends() -> None:
        record(answer(running, 503))

    assert poll().status == 204
    running = claim(command)
    for news in (
        lambda: None,
        attempt_ends,
        lambda: datasets.disarm(scene.operator, scene.dataset.pk),
        lambda: lifecycle.retract(scene.operator, command.pk),
    ):
        news()
        answered = poll()
        assert answered.status == 200
        assert "<html" not in answered.html
        revisions.append(answered.revision)
        assert poll().status == 204


def test_the_page_takes_the_same_queries_however_much_happened(scene: Scene) -> None:
    once, often = scene.dispatched(), scene.dispatched()
    fail_with(once, [503])
    fail_with(often, [503, 500, 502, 503])
    visitor = Visitor(scene.operator)
    few = queries_of(lambda: visitor.get(page_of(once)))
    assert queries_of(lambda: visitor.get(page_of(often))) == few


@pytest.mark.parametrize("state", State)
def test_every_state_has_a_page(scene: Scene, state: State) -> None:
    assert seen(scene, scene.in_state(state)).status == 200
