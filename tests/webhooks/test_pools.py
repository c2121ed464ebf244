"""Which workers are alive, and which are missed."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta

import pytest

from organizations.clock import database_now
from webhooks.models import Heartbeat
from webhooks.pools import Pool, pools

pytestmark = pytest.mark.django_db

_names = (f"pool-{number}" for number in itertools.count())


def beaten(host: str, ago_s: float, now: datetime) -> None:
    """A pool of this host whose last heartbeat was so long ago."""
    Heartbeat.objects.create(
        cluster=next(_names), host=host, beat_at=now - timedelta(seconds=ago_s)
    )


def seen(now: datetime) -> list[tuple[str, bool]]:
    return [(pool.host, pool.alive) for pool in pools(now)]


def test_there_may_never_have_been_any() -> None:
    assert pools(database_now()) == []


def test_a_heartbeat_within_fifteen_seconds_is_life() -> None:
    now = database_now()
    beaten("one", 15, now)
    beaten("two", 15.1, now)
    assert seen(now) == [("one", True), ("two", False)]


def test_what_a_pool_shows_does_not_change_with_each_heartbeat() -> None:
    now = database_now()
    beaten("one", 3, now)
    before = pools(now)
    Heartbeat.objects.update(beat_at=now)
    assert pools(now) == before


def test_a_silent_pool_with_a_successor_on_its_host_is_not_missed() -> None:
    now = database_now()
    beaten("one", 60, now)
    beaten("one", 1, now)
    assert seen(now) == [("one", True)]


def test_a_host_is_missed_for_an_hour() -> None:
    now = database_now()
    beaten("one", 1, now)
    beaten("two", 3599, now)
    beaten("three", 3601, now)
    assert seen(now) == [("one", True), ("two", False)]


def test_without_any_alive_the_last_that_was_is_shown_however_long_ago() -> None:
    now = database_now()
    beaten("one", 7200, now)
    beaten("two", 86_400, now)
    [last] = pools(now)
    assert isinstance(last, Pool)
    assert last.host == "one"
    assert last.last_beat_at == now - timedelta(seconds=7200)
