"""Reading back: one order, and no event that a reader has passed before it was committed."""

from __future__ import annotations

import functools
import queue
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

import pytest
from django.db import connection, transaction

from tests.factories import Scene, new_scene
from tests.plain_sql import Connection, refused
from tests.racing import PATIENCE_S, race, results
from tests.statements import counted
from webhooks import feed
from webhooks.models import Event


def read(scene: Scene, after: int = 0, limit: int = 200, wanted: str = "*") -> feed.Page:
    return feed.read(scene.organization.pk, after, limit, wanted)


def ids(page: feed.Page) -> list[UUID]:
    return [event.pk for event in page.events]


def committed(scene: Scene) -> list[UUID]:
    """What a reader has to find, in the order of the feed."""
    rows = Event.objects.filter(organization=scene.organization, published=True)
    return list(rows.order_by("place").values_list("pk", flat=True))


# --- one reader alone ---------------------------------------------------------------------------


def test_events_come_oldest_first_page_by_page(scene: Scene) -> None:
    made = [scene.published().pk for _ in range(5)]

    first = read(scene, limit=2)
    second = read(scene, first.read_to, limit=2)
    third = read(scene, second.read_to, limit=2)

    assert [ids(first), ids(second), ids(third)] == [made[:2], made[2:4], made[4:]]
    assert ids(read(scene, third.read_to)) == []


def test_a_poller_goes_on_from_the_last_page(scene: Scene) -> None:
    empty = read(scene)
    assert ids(empty) == []
    first = scene.published().pk
    page = read(scene, empty.read_to)
    assert ids(page) == [first]
    second = scene.published().pk

    assert ids(read(scene, page.read_to)) == [second]


def test_events_for_one_endpoint_and_those_of_others_are_not_in_it(scene: Scene) -> None:
    scene.send()
    new_scene("Strangers").published()
    ours = scene.published().pk

    assert ids(read(scene)) == [ours]


def test_a_reader_of_one_type_does_not_look_at_the_others_twice(scene: Scene) -> None:
    wanted = scene.published("order.created").pk
    for _ in range(3):
        last = scene.published("noise.made")
    page = read(scene, wanted="order.*")
    assert ids(page) == [wanted]

    onward = read(scene, page.read_to, wanted="order.*")

    assert ids(onward) == []
    assert onward.read_to == feed.place_of(scene.organization.pk, last.pk)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [("*", 4), ("order.*", 2), ("order.created", 1), ("order", 1), ("nothing.*", 0), ("o.*", 0)],
)
def test_a_type_or_a_prefix_narrows_it(scene: Scene, wanted: str, found: int) -> None:
    for event_type in ("order", "order.created", "order.paid", "orders.created"):
        scene.published(event_type)

    assert len(ids(read(scene, wanted=wanted))) == found


def test_a_prefix_is_no_pattern(scene: Scene) -> None:
    scene.published("orders.created")

    assert ids(read(scene, wanted="order_.*")) == []


def test_a_page_of_large_events_ends_early(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "PAGE_BYTES", 3000)
    made = [scene.published(text="x" * 1000).pk for _ in range(5)]

    first = read(scene)

    assert ids(first) == made[:3]
    assert ids(read(scene, first.read_to)) == made[3:]


def test_an_event_larger_than_a_page_is_a_page(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "PAGE_BYTES", 10)
    made = [scene.published().pk for _ in range(2)]

    assert ids(read(scene)) == made[:1]


def test_a_page_takes_as_many_statements_with_many_events_as_with_one(scene: Scene) -> None:
    def statements() -> int:
        with counted() as captured:
            assert [event.value["type"] for event in read(scene).events]
        return len(captured)

    scene.published()
    few = statements()
    for _ in range(10):
        scene.published()

    assert statements() == few == 3


def test_nobody_can_have_read_further_than_there_are_events(scene: Scene) -> None:
    scene.published()

    with pytest.raises(feed.NeverThere):
        read(scene, after=2**40)


def test_nobody_chooses_the_place_of_an_event(scene: Scene, sql: Connection) -> None:
    first = scene.published()
    sql.execute(
        "INSERT INTO webhooks_event (id, organization_id, type, body, published, place)"
        " SELECT gen_random_uuid(), organization_id, 'by.hand', body, true, 1 FROM webhooks_event"
    )
    last = scene.published()

    assert [e.type for e in read(scene).events] == ["order.created", "by.hand", "order.created"]
    assert [read(scene).events[n].pk for n in (0, 2)] == [first.pk, last.pk]
    with refused(sql, "append-only"):
        sql.execute("UPDATE webhooks_event SET place = place + 1")


def test_an_event_for_one_endpoint_has_no_place(scene: Scene, sql: Connection) -> None:
    scene.send()

    with refused(sql, "published_event_has_its_place"):
        sql.execute(
            "INSERT INTO webhooks_event (id, organization_id, type, body, published, place)"
            " SELECT gen_random_uuid(), organization_id, type, body, false, 1 FROM webhooks_event"
        )


# --- readers beside writers ---------------------------------------------------------------------


class Writer:
    """A transaction in a thread of its own: it has published, and stays open until it is to end."""

    def __init__(self, scene: Scene, *, rolls_back: bool = False) -> None:
        self.made: list[UUID] = []
        self._scene, self._rolls_back = scene, rolls_back
        self._published, self._go = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        assert self._published.wait(PATIENCE_S)

    def end(self) -> None:
        self._go.set()
        self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        try:
            with transaction.atomic():
                self.made.append(self._scene.published().pk)
                self._published.set()
                self._go.wait(PATIENCE_S)
                transaction.set_rollback(self._rolls_back)
        finally:
            connection.close()


@contextmanager
def open_transaction(scene: Scene, *, rolls_back: bool = False) -> Iterator[Writer]:
    """A transaction that has published and ends with the block."""
    writer = Writer(scene, rolls_back=rolls_back)
    try:
        yield writer
    finally:
        writer.end()


@dataclass
class Poller:
    """Reads on from where it was, and keeps what it saw."""

    scene: Scene
    place: int = 0
    seen: list[UUID] = field(default_factory=list)

    def poll(self) -> int:
        """Read one page; how many events it had."""
        page = read(self.scene, self.place)
        self.seen += ids(page)
        self.place = page.read_to
        return len(page.events)


@pytest.mark.django_db(transaction=True)
def test_who_published_first_and_commits_last_is_not_skipped(scene: Scene) -> None:
    poller = Poller(scene)
    with open_transaction(scene) as slow:
        quick = scene.published().pk
        assert poller.poll() == 0, "what comes after an open transaction waits for it"
    poller.poll()

    assert poller.seen == [*slow.made, quick]


@pytest.mark.django_db(transaction=True)
def test_what_was_published_before_an_open_transaction_is_shown_meanwhile(scene: Scene) -> None:
    before = scene.published().pk

    with open_transaction(scene):
        scene.published()
        assert ids(read(scene)) == [before]


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_rolls_back_holds_nobody_up_afterwards(scene: Scene) -> None:
    with open_transaction(scene, rolls_back=True):
        quick = scene.published().pk

    assert ids(read(scene)) == [quick]


@pytest.mark.django_db(transaction=True)
def test_after_a_savepoint_is_undone_the_next_event_is_announced_anew(scene: Scene) -> None:
    with transaction.atomic():
        with transaction.atomic():
            scene.published()
            transaction.set_rollback(True)
        slow = scene.published().pk
        [quick] = results(race(lambda: scene.published().pk))
        [seen] = results(race(lambda: ids(read(scene))))
        assert seen == []

    assert ids(read(scene)) == [slow, quick]


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_publishes_nothing_holds_nobody_up(scene: Scene) -> None:
    with transaction.atomic():
        scene.send()
        [shown] = results(race(lambda: [scene.published().pk] == ids(read(scene))))

    assert shown


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("step", ["_next_place", "_lowest_announced"])
def test_what_happens_between_the_steps_of_a_reader_is_left_for_its_next_page(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Somebody begins and stays, somebody else comes after him and commits, right after the step."""
    as_it_is = getattr(feed, step)
    poller, slow = Poller(scene), list[Writer]()

    def with_company() -> int | None:
        found: int | None = as_it_is()
        if not slow:
            slow.append(Writer(scene))
            race(scene.published)
        return found

    monkeypatch.setattr(feed, step, with_company)
    poller.poll()
    slow[0].end()
    poller.poll()

    assert poller.seen == committed(scene)
    assert poller.seen[0] == slow[0].made[0]


@pytest.mark.django_db(transaction=True)
def test_in_whatever_order_eight_writers_commit_a_poller_sees_each_event_once(
    scene: Scene,
) -> None:
    """Eight transactions are open at any time; one of them ends, by chance, and somebody reads."""
    chance, poller = random.Random(8), Poller(scene)
    open_ones = [Writer(scene) for _ in range(8)]
    for _ in range(50):
        open_ones.pop(chance.randrange(8)).end()
        poller.poll()
        open_ones.append(Writer(scene, rolls_back=chance.random() < 0.2))
    for writer in open_ones:
        writer.end()
    poller.poll()

    assert poller.seen == committed(scene)
    assert len(poller.seen) == len(set(poller.seen)) > 30


@pytest.mark.django_db(transaction=True)
def test_eight_writers_at_full_speed_do_not_slip_past_a_poller(scene: Scene) -> None:
    poller, ended = Poller(scene), queue.SimpleQueue[int]()

    def write(number: int) -> None:
        chance = random.Random(number)
        for _ in range(25):
            with transaction.atomic():
                for _ in range(chance.randrange(1, 4)):
                    scene.published()
        ended.put(number)

    def poll() -> None:
        while ended.qsize() < 8:
            poller.poll()
        while poller.poll():
            pass

    results(race(*(functools.partial(write, number) for number in range(8)), poll))

    assert poller.seen == committed(scene)
    assert len(poller.seen) == len(set(poller.seen)) >= 200
