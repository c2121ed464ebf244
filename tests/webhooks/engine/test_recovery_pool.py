"""A real pool of workers loses one of its processes, and is whole again without a person."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings

from commands.models import Command
from commands.rules.states import State
from tests.chaos.census import Census, Kind, is_alive
from tests.factories import Scene
from tests.receivers import respond
from tests.scenarios.workers import Workers, receiving, wait_for
from webhooks.models import Heartbeat

pytestmark = pytest.mark.django_db(transaction=True)

# Fifteen seconds of silence, a start on a busy machine, and what was on the wire.
PATIENCE_S = 90.0


@pytest.fixture
def workers(scene: Scene, tmp_path: Path) -> Iterator[Workers]:
    with Workers.at_work(tmp_path) as running:
        yield running


@pytest.fixture
def pool(workers: Workers) -> dict[Kind, list[int]]:
    """The processes by what they do."""
    census = Census(settings.DELIVERY_WORKERS)
    wait_for(lambda: census.is_whole(workers.process.pid))
    return census.look(workers.process.pid)


def delivers(scene: Scene) -> None:
    """Wait until a new command arrives."""
    with receiving(scene.endpoint, respond(200)):
        command = scene.dispatched()
        wait_for(
            lambda: Command.objects.filter(pk=command.pk, state=State.DELIVERED).exists(),
            PATIENCE_S,
        )


def waits_for_results(pid: int) -> bool:
    """Whether the process is blocked in reading a queue, for which it holds the queue's lock."""
    return "pipe_read" in Path(f"/proc/{pid}/wchan").read_text()


def restarted() -> bool:
    """Whether a second pool has shown a sign of life."""
    return Heartbeat.objects.count() >= 2


def test_a_pool_whose_monitor_was_killed_is_started_again(
    scene: Scene, workers: Workers, pool: dict[Kind, list[int]]
) -> None:
    """Its successor would wait for ever for the lock that the dead one held."""
    [monitor] = pool[Kind.MONITOR]
    wait_for(lambda: waits_for_results(monitor))

    os.kill(monitor, signal.SIGKILL)

    wait_for(restarted, PATIENCE_S)

    assert "no heartbeat" in workers.log.read_text()
    delivers(scene)


def test_a_pool_whose_sentinel_is_stuck_is_started_again(
    scene: Scene, workers: Workers, pool: dict[Kind, list[int]]
) -> None:
    """All others work, and so does the heartbeat; but nobody would replace the next that dies."""
    os.kill(pool[Kind.SENTINEL][0], signal.SIGSTOP)

    wait_for(restarted, PATIENCE_S)

    assert "sentinel is stuck" in workers.log.read_text()
    delivers(scene)


def test_a_frozen_pool_ends_with_its_watch(scene: Scene, tmp_path: Path) -> None:
    with Workers.at_work(tmp_path) as workers:
        pids = [workers.pool_pid(), *workers.pool_processes()]
        for pid in pids[2:]:
            os.kill(pid, signal.SIGSTOP)
        workers.process.kill()

        wait_for(lambda: not any(is_alive(pid) for pid in pids), PATIENCE_S)


def test_a_pool_that_lost_watch_and_parent_ends(scene: Scene, tmp_path: Path) -> None:
    with Workers.at_work(tmp_path) as workers:
        pids = [workers.pool_pid(), *workers.pool_processes()]
        workers.process.kill()
        os.kill(pids[0], signal.SIGKILL)

        wait_for(lambda: not any(is_alive(pid) for pid in pids), PATIENCE_S)
