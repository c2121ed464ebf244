"""From one process to the next, and from one release to the next: nothing is lost on the way."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from django.core import signing
from django.db import transaction
from django_q.conf import Conf
from django_q.models import OrmQ, Schedule, Success
from django_q.signing import PickleSerializer, SignedPackage

from commands.models import Command
from commands.rules.states import State
from tests.factories import Scene, delivery_of, make_due
from tests.racing import wait_until_somebody_waits_for_us
from tests.receivers import Visit, respond
from tests.scenarios.workers import PATIENCE_S, Workers, pid_of, receiving, wait_for
from webhooks.models import Attempt, Delivery, Heartbeat

pytestmark = pytest.mark.django_db(transaction=True)


def attempts(command: Command) -> list[Attempt]:
    return list(Attempt.objects.filter(delivery__command_id=command.pk).order_by("number"))


def delivered(*commands: Command) -> bool:
    ids = [command.pk for command in commands]
    return Command.objects.filter(pk__in=ids, state=State.DELIVERED).count() == len(ids)


# --- a worker dies between the answer and its recording -----------------------------------------


def test_a_worker_killed_after_the_answer_and_before_its_recording_loses_nothing(
    scene: Scene, tmp_path: Path
) -> None:
    """The receiver has said 200 and nobody knows: the next attempt brings it the same message again."""
    may_answer = threading.Event()

    def answer_when_told(visit: Visit) -> None:
        may_answer.wait(PATIENCE_S)
        respond(200)(visit)

    with Workers.at_work(tmp_path), receiving(scene.endpoint, answer_when_told) as receiver:
        command = scene.dispatched()
        wait_for(lambda: receiver.requests)
        [first] = attempts(command)
        with transaction.atomic():
            delivery = Delivery.objects.select_for_update().get(command_id=command.pk)
            may_answer.set()
            wait_until_somebody_waits_for_us()
            os.kill(pid_of(first.worker), signal.SIGKILL)
            Delivery.objects.filter(pk=delivery.pk).update(lease_until=first.claimed_at)
        wait_for(lambda: delivery_of(delivery).next_attempt_at)
        make_due(delivery.pk)
        wait_for(lambda: delivered(command))

    assert [attempt.verdict for attempt in attempts(command)] == ["lost", "delivered"]
    first_request, second_request = receiver.requests
    assert first_request.headers["webhook-id"] == second_request.headers["webhook-id"]
    assert first_request.body == second_request.body


# --- workers are replaced -----------------------------------------------------------------------


def test_workers_that_are_recycled_finish_what_they_have_and_their_successors_go_on(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each opens connections of its own after the fork, to PostgreSQL and to receivers."""
    recycling = "from config.settings import *\nQ_CLUSTER = Q_CLUSTER | {'recycle': 5}\n"
    (tmp_path / "recycling_settings.py").write_text(recycling)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "recycling_settings")
    made: list[Command] = []

    def four_workers_were_at_it() -> bool:
        made.append(command := scene.dispatched())
        wait_for(lambda: delivered(command))
        return len(set(Attempt.objects.values_list("worker", flat=True))) >= 4

    with Workers.at_work(tmp_path), receiving(scene.endpoint, respond(200)) as receiver:
        wait_for(four_workers_were_at_it)

    assert set(Attempt.objects.values_list("verdict", flat=True)) == {"delivered"}
    assert len(receiver.requests) == Attempt.objects.count() == len(made)
    assert Heartbeat.objects.count() == 1, "the pool as a whole was never started again"


# --- what another release left ------------------------------------------------------------------


@pytest.fixture
def what_was_renamed(monkeypatch: pytest.MonkeyPatch) -> object:
    """An object of a class that only this process knows: what a task of an older release may hold."""
    module = ModuleType("release_before")
    module.Renamed = type("Renamed", (), {"__module__": module.__name__})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module.Renamed()


def test_what_another_release_or_another_key_left_in_the_queue_stops_nothing(
    scene: Scene, tmp_path: Path, what_was_renamed: object
) -> None:
    task: dict[str, Any] = {
        "id": "1" * 32,
        "name": "left",
        "func": "webhooks.gone.away",
        "args": (),
        "kwargs": {},
        "started": scene.dataset.created_at,
    }
    left = [
        SignedPackage.dumps(task),
        SignedPackage.dumps(task | {"args": (what_was_renamed,)}),
        signing.dumps({}, key="another key", salt=Conf.PREFIX, serializer=PickleSerializer),
        "no task at all",
    ]
    for payload in left:
        OrmQ.objects.create(key="console", payload=payload, lock=scene.dataset.created_at)
    Schedule.objects.create(func="math.floor", args="(", next_run=scene.dataset.created_at)

    with Workers.at_work(tmp_path) as workers, receiving(scene.endpoint, respond(200)):
        command = scene.dispatched()
        wait_for(lambda: delivered(command))
        wait_for(lambda: OrmQ.objects.count() == 1)
        pusher_and_all = workers.pool_processes()
        again = scene.dispatched()
        wait_for(lambda: delivered(again))
        assert workers.pool_processes() == pusher_and_all

    assert Heartbeat.objects.count() == 1
    assert not Success.objects.exists(), "deliveries and ticks leave no rows in the queue's tables"
