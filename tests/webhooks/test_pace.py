"""The last hour by the minute: what is counted where, how often, and how much at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from organizations.clock import database_now
from tests.factories import Scene, answer, claim, ending, new_scene, record
from webhooks import pace
from webhooks.pace import Minute, Tally

pytestmark = pytest.mark.django_db


def attempted(scene: Scene, *ends: int | str) -> None:
    """One delivery for each of these ends, tried once."""
    for end in ends:
        record(ending(claim(scene.send()), end))


def hour(scene: Scene, later: timedelta = timedelta()) -> list[Minute]:
    """The last hour as it is looked at so much later."""
    return pace.last_hour(scene.organization, database_now() + later)


def total(minutes: Sequence[Minute]) -> Tally:
    """A test that runs across the turn of a minute has its attempts in two of them."""
    return Tally(
        *(sum(parts) for parts in zip(*(m.tally or Tally() for m in minutes), strict=True))
    )


def test_where_nothing_was_ever_attempted_each_minute_has_nothing(scene: Scene) -> None:
    minutes = hour(scene)
    assert [minute.tally for minute in minutes] == [Tally()] * 60
    assert minutes[-1].start <= database_now() < minutes[-1].start + 2 * pace.MINUTE
    assert minutes[-1].start - minutes[0].start == 59 * pace.MINUTE


def test_what_became_of_the_attempts(scene: Scene) -> None:
    attempted(scene, 200, 204, 503, 400, "timeout", "lost")
    claim(scene.send())  # on the wire
    assert total(hour(scene)) == Tally(delivered=2, failed=3, lost=1)


def test_an_attempt_is_in_the_minute_in_which_it_began(scene: Scene) -> None:
    before = database_now()
    attempted(scene, 200)
    minutes = hour(scene, timedelta(minutes=30))
    [place] = [n for n, minute in enumerate(minutes) if minute.tally == Tally(delivered=1)]
    assert minutes[place].start <= database_now()
    assert before < minutes[place].start + pace.MINUTE
    assert total(minutes) == Tally(delivered=1)


def test_an_hour_later_it_is_gone(scene: Scene) -> None:
    attempted(scene, 200)
    assert total(hour(scene, timedelta(minutes=61))) == Tally()


def test_nothing_of_another_organization_is_counted(scene: Scene) -> None:
    attempted(new_scene(), 200, 503)
    attempted(scene, 200)
    assert total(hour(scene)) == Tally(delivered=1)


def test_the_minute_under_way_is_counted_each_time(scene: Scene) -> None:
    attempted(scene, 200)
    assert total(hour(scene)) == Tally(delivered=1)
    attempted(scene, 200)
    assert total(hour(scene)) == Tally(delivered=2)


def test_a_minute_that_is_over_is_counted_once(scene: Scene) -> None:
    attempted(scene, 200)
    later = timedelta(minutes=10)
    assert total(hour(scene, later)) == Tally(delivered=1)
    attempted(scene, 200)
    assert total(hour(scene, later)) == Tally(delivered=1)


def test_a_minute_is_over_only_when_a_dead_workers_attempt_is_closed(scene: Scene) -> None:
    attempt, before_its_lease_ends = claim(scene.send()), timedelta(seconds=25)
    assert total(hour(scene, before_its_lease_ends)) == Tally()
    record(answer(attempt, 200))
    assert total(hour(scene, before_its_lease_ends)) == Tally(delivered=1)


def test_one_look_counts_so_many_attempts_but_gets_on_with_minutes_that_are_over(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "AT_MOST", 2)
    attempted(scene, 200, 200, 200, 200, 200, 200)
    under_way = [minute for minute in hour(scene) if minute.tally is None]
    assert 1 <= len(under_way) <= 2
    assert total(hour(scene, timedelta(minutes=10))).delivered > 2


def test_older_minutes_come_with_the_next_looks(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "AT_MOST", 0)
    now = database_now()
    starts = [now.replace(second=0, microsecond=0) - pace.MINUTE * back for back in (2, 3, 4)]
    spans = [pace.Span(start, 10, 20) for start in starts]
    assert [span.start for span in pace._affordable(spans, now)] == [starts[0]]
    assert [span.start for span in pace._affordable(spans[1:], now)] == [starts[1]]


def test_ends_of_minutes_are_found_among_gaps_of_ids(scene: Scene) -> None:
    times: list[datetime] = []
    for _ in range(7):
        times.append(database_now())
        attempted(scene, 200)
    firsts = pace._firsts({}, [*times, database_now()])
    ids = list(firsts.values())
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)
