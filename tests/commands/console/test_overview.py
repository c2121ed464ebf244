"""The overview's page: what needs a person first, and polls that cost little."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from commands import datasets, lifecycle, overview, settling
from commands.console.attention import TIMED_OUT, Group, Item
from commands.errors import DispatchRefused
from commands.models import Command
from commands.rules.states import State
from organizations.clock import database_now
from tests.factories import Scene, fail_with
from tests.visitors import Page, Visitor, queries_of
from webhooks import endpoints, pace, watching
from webhooks.models import Heartbeat

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]

PATH = "/overview/"


@pytest.fixture(autouse=True)
def workers(db: None) -> Heartbeat:
    """Workers that are alive, for as long as a test takes."""
    soon = database_now() + timedelta(minutes=5)
    return Heartbeat.objects.create(cluster="pool", host="delivery-1", beat_at=soon)


def seen(scene: Scene) -> Page:
    return Visitor(scene.viewer).get(PATH)


def kinds(page: Page) -> list[str]:
    """The kinds of what needs a person, in the page's order."""
    return re.findall(r'id="g-([a-z-]+)"', page.html)


def poll(visitor: Visitor, revision: str) -> Page:
    return visitor.poll(PATH, "overview-live", revision)


def refused(scene: Scene) -> Command:
    """A command whose dispatch was refused; nothing is armed from then on."""
    command = scene.issued()
    datasets.disarm(scene.operator, scene.dataset.pk)
    with pytest.raises(DispatchRefused):
        lifecycle.dispatch(scene.operator, command.pk)
    return command


# --- what needs a person ------------------------------------------------------------------------


def test_an_organization_that_never_issued_anything_is_led_to_its_first_command(
    scene: Scene,
) -> None:
    for actor, steps in (
        (scene.owner, "register the endpoint"),
        (scene.viewer, "an operator issues"),
    ):
        page = Visitor(actor).get(PATH)

        assert page.has("first-steps")
        assert not page.has("all-clear")
        assert steps in page.text

    scene.issued()

    assert not seen(scene).has("first-steps")


def test_people_arrive_at_the_overview(scene: Scene) -> None:
    assert Visitor(scene.viewer).get("/").to == PATH


def test_all_clear_is_said_when_nothing_needs_anybody(scene: Scene) -> None:
    scene.in_state(State.ACKED)
    page = seen(scene)
    assert page.has("all-clear")
    assert not kinds(page)


def test_what_needs_a_person_stands_in_the_order_of_its_weight(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LATE_AFTER", timedelta())
    timed_out, near = scene.in_state(State.TIMED_OUT), scene.overdue()
    late, failing, disabled = (scene.another_endpoint(name=n) for n in ("Late", "Poorly", "Moved"))
    endpoints.disable(scene.owner, disabled.pk, "Moving house")
    fail_with(scene.send(failing), [503] * 3)
    not_dispatched = refused(scene)
    scene.send(late)
    page = seen(scene)
    found = ["timed-out", "disabled", "failing", "refused", "deadlines", "behind"]
    assert kinds(page) == found
    assert not page.has("all-clear")
    for command in (timed_out, near, not_dispatched):
        assert f'href="/commands/{command.pk}/"' in page.html
    for endpoint in (late, failing, disabled):
        assert f'href="/endpoints/{endpoint.pk}/"' in page.html
    for said in ("Moving house", "17 more failures disable it", "dataset not armed", "passed"):
        assert said in page.text


def test_a_deadline_counts_down(scene: Scene) -> None:
    scene.overdue()
    assert 'role="timer"' in seen(scene).html


def test_the_first_few_are_named_and_the_list_has_the_others(scene: Scene) -> None:
    for _ in range(overview.SHOWN + 2):
        scene.in_state(State.TIMED_OUT)
    page = seen(scene)
    assert "and 2 more" in page.text
    assert page.html.count('id="l-timed-out-') == overview.SHOWN
    assert 'href="/commands/?state=timed_out"' in page.html


def test_the_list_has_those_alone_whose_dispatch_was_refused(scene: Scene) -> None:
    waiting, commands = scene.issued(), [refused(scene) for _ in range(overview.SHOWN + 1)]
    assert 'href="/commands/?state=refused"' in seen(scene).html
    listed = Visitor(scene.viewer).get("/commands/", state="refused").html
    assert all(f'id="c-{command.pk}"' in listed for command in commands)
    assert f'id="c-{waiting.pk}"' not in listed


@pytest.mark.parametrize(
    ("group", "count", "more"),
    [
        (Group(TIMED_OUT, [Item("a", "a", "")], 1), "1", ""),
        (Group(TIMED_OUT, [Item("a", "a", "")], 1201), "1,201", "and 1,200 more"),
        (Group(TIMED_OUT, [Item("a", "a", "")], 201, at_least=True), "201+", "and 200 or more"),
    ],
)
def test_how_many_there_are_in_words(group: Group, count: str, more: str) -> None:
    assert (group.count, group.more) == (count, more)


def test_late_work_says_whether_the_receiver_or_the_workers_hold_it_up(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "LATE_AFTER", timedelta())
    scene.dispatched()
    assert "the workers do not get to it" in seen(scene).text
    scene.on_the_wire()
    assert "waits its turn: 1 on the wire" in seen(scene).text


def test_names_from_elsewhere_are_inert(scene: Scene) -> None:
    endpoint = scene.another_endpoint(name="<b>bold</b>\u202egnp")
    endpoints.disable(scene.owner, endpoint.pk, "<i>because</i>")
    page = seen(scene)
    assert "<b>bold" not in page.html
    assert "<i>because" not in page.html
    assert "\u202e" not in page.html


# --- workers ------------------------------------------------------------------------------------


def test_workers_say_whether_they_live(scene: Scene, workers: Heartbeat) -> None:
    assert "Alive delivery-1" in seen(scene).text
    Heartbeat.objects.update(beat_at=database_now() - timedelta(minutes=3))
    page = seen(scene)
    assert kinds(page) == ["no-worker"]
    assert "Silent delivery-1" in page.text
    assert "3 min ago" in page.text


def test_where_no_worker_ever_ran_it_says_how_one_is_started(
    scene: Scene, workers: Heartbeat
) -> None:
    workers.delete()
    page = seen(scene)
    assert kinds(page) == ["no-worker"]
    assert "No worker has ever run" in page.text


# --- counts and charts --------------------------------------------------------------------------


def test_commands_are_counted_by_state_and_lead_to_their_list(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "COUNTED_TO", 2)
    monkeypatch.setattr("commands.console.views.overview.COUNTED_TO", 2)
    for _ in range(3):
        scene.issued()
    scene.in_state(State.ACKED)
    page = seen(scene)
    assert "Logged 2+" in page.text
    assert "Acked 1" in page.text
    assert 'href="/commands/?state=logged"' in page.html
    assert 'href="/commands/?state=acked&amp;within=24h"' in page.html


def test_the_last_hour_is_drawn_and_can_be_read(scene: Scene) -> None:
    scene.delivered()
    fail_with(scene.dispatched(), [503, 503, 503])
    page = seen(scene)
    assert "1 delivered in 60 min, 3 attempts failed" in page.text
    assert "25 % of 4 attempts" in page.text
    assert "Success rate by minute over the last 60 minutes: 25 % of all attempts." in page.html
    assert page.html.count('<th scope="row">') == 60


def test_an_hour_that_is_not_counted_whole_says_so(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "AT_MOST", 0)
    scene.delivered()
    page = seen(scene)
    assert "59 of 60 minutes are counted" in page.text
    assert "not counted yet" in page.text


def test_an_empty_hour_has_no_rate(scene: Scene) -> None:
    page = seen(scene)
    assert "0 delivered in 60 min" in page.text
    assert "no attempt in 60 min" in page.text


# --- polls --------------------------------------------------------------------------------------


def test_a_poll_without_news_is_empty_although_time_passes(
    scene: Scene, workers: Heartbeat
) -> None:
    scene.in_state(State.TIMED_OUT)
    visitor = Visitor(scene.viewer)
    revision = visitor.get(PATH).revision
    Heartbeat.objects.update(beat_at=database_now())
    again = poll(visitor, revision)
    # The turn of a minute moves the charts.
    assert again.status == 204 or poll(visitor, again.revision).status == 204


def test_a_poll_with_news_is_the_live_part_alone(scene: Scene) -> None:
    visitor = Visitor(scene.viewer)
    revision = visitor.get(PATH).revision
    endpoints.disable(scene.owner, scene.endpoint.pk, "Moving")
    polled = poll(visitor, revision)
    assert polled.status == 200
    assert kinds(polled) == ["disabled"]
    assert "<html" not in polled.html
    assert 'data-announce="Needs a person: endpoints disabled."' in polled.html


def test_the_number_of_queries_does_not_grow(scene: Scene) -> None:
    visitor = Visitor(scene.viewer)

    def rows(number: int) -> None:
        for _ in range(number):
            scene.overdue()
            endpoints.disable(scene.owner, scene.another_endpoint().pk, "Moving")
        settling.time_out_overdue()

    def queries() -> int:
        visitor.get(PATH)  # a minute that is over is remembered, once
        return queries_of(lambda: visitor.get(PATH))

    rows(3)
    few = queries()
    rows(57)
    assert queries() == few
    assert queries_of(lambda: poll(visitor, "")) == few


# --- the ways there -----------------------------------------------------------------------------


def ways(page: Page) -> list[str]:
    return re.findall(r'id="nav-([a-z]+)"\s+href', page.html)


def test_the_ways_are_in_their_order_and_an_owners_only_for_owners(scene: Scene) -> None:
    shared = ["overview", "commands", "datasets", "endpoints", "deliveries", "events", "notices"]
    assert ways(Visitor(scene.owner).get(PATH)) == [*shared, "audit", "members"]
    assert ways(Visitor(scene.operator).get(PATH)) == shared


def test_the_way_that_one_went_is_marked(scene: Scene) -> None:
    command = scene.issued()
    visitor = Visitor(scene.viewer)
    for path, way in ((PATH, "overview"), (f"/commands/{command.pk}/", "commands")):
        marked = re.findall(r'id="nav-([a-z]+)"[^>]*aria-current="page"', visitor.get(path).html)
        assert marked == [way]
