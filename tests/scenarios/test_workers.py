"""Real worker processes, a real receiver, and what happens when one of them dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from standardwebhooks.webhooks import Webhook

from commands.models import Command
from commands.rules.states import State
from organizations import exact_json
from tests.factories import Scene
from tests.receivers import hang, respond
from tests.scenarios.workers import Workers, pid_of, receiving, wait_for
from webhooks import secrets
from webhooks.models import Attempt, Heartbeat

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def workers(scene: Scene, tmp_path: Path) -> Iterator[Workers]:
    with Workers.at_work(tmp_path) as running:
        yield running


def attempts(command: Command) -> list[Attempt]:
    return list(Attempt.objects.filter(delivery__command_id=command.pk).order_by("number"))


def reached(command: Command, *states: State) -> bool:
    return Command.objects.filter(pk=command.pk, state__in=states).exists()


def test_a_dispatched_command_reaches_its_receiver_signed(scene: Scene, workers: Workers) -> None:
    with receiving(scene.endpoint, respond(204)) as receiver:
        command = scene.dispatched(speed=exact_json.loads("1.10"), name="é 🚀")
        wait_for(lambda: reached(command, State.DELIVERED))

    [request] = receiver.requests
    secret = secrets.decrypt(scene.endpoint.secrets.get().ciphertext)
    sent = Webhook(secret).verify(request.body, request.headers)
    assert sent["command"]["id"] == str(command.pk)
    assert sent["command"]["clientToken"] == command.client_token
    assert b'"speed":1.10' in request.body


def test_a_retry_sends_the_same_bytes_under_the_same_id_and_never_early(
    scene: Scene, workers: Workers
) -> None:
    with receiving(scene.endpoint, respond(503), respond(200)) as receiver:
        command = scene.dispatched()
        wait_for(lambda: reached(command, State.DELIVERED))

    first, second = receiver.requests
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert [r.headers["x-webhook-attempt"] for r in (first, second)] == ["1", "2"]
    failed, delivered = attempts(command)
    assert delivered.due_at == failed.next_attempt_at
    assert delivered.started_at is not None
    assert delivered.started_at >= delivered.due_at


def test_the_clock_times_out_a_command_that_nobody_reports_on(
    scene: Scene, workers: Workers
) -> None:
    with receiving(scene.endpoint, respond(200)):
        command = scene.dispatched(ack_timeout_s=1)
        wait_for(lambda: reached(command, State.TIMED_OUT))

    command.refresh_from_db()
    assert command.settled_at is not None
    assert command.ack_deadline is not None
    assert command.settled_at >= command.ack_deadline


def test_a_killed_worker_loses_nothing(scene: Scene, workers: Workers) -> None:
    """The attempt on the wire is closed as lost when its lease ends, and the next one follows."""
    with receiving(scene.endpoint, hang, respond(200)) as receiver:
        command = scene.dispatched()
        wait_for(lambda: receiver.requests)
        [on_the_wire] = attempts(command)
        os.kill(pid_of(on_the_wire.worker), signal.SIGKILL)
        wait_for(lambda: reached(command, State.DELIVERED), patience_s=90)

    assert [attempt.verdict for attempt in attempts(command)] == ["lost", "delivered"]
    assert len(receiver.requests) == 2


def test_a_stop_lets_what_is_on_the_wire_finish_and_records_it(
    scene: Scene, workers: Workers
) -> None:
    with receiving(scene.endpoint, hang, respond(200)) as receiver:
        command = scene.dispatched()
        wait_for(lambda: receiver.requests)
        assert workers.stop() == 0

    [attempt] = attempts(command)
    assert attempt.error_kind == "timeout"
    assert attempt.next_attempt_at is not None


@pytest.mark.parametrize("which", ["parent", "sentinel"])
def test_a_pool_that_lost_its_head_is_started_again(
    scene: Scene, workers: Workers, which: str
) -> None:
    parent, sentinel = workers.pool_pid(), workers.pool_processes()[0]
    os.kill(parent if which == "parent" else sentinel, signal.SIGKILL)

    with receiving(scene.endpoint, respond(200)):
        command = scene.dispatched()
        wait_for(lambda: reached(command, State.DELIVERED))
    assert Heartbeat.objects.count() >= 1


def test_a_frozen_pool_is_started_again(scene: Scene, workers: Workers) -> None:
    """As when a worker is killed while it holds the queue's lock: all are alive, none works."""
    _sentinel, *others = workers.pool_processes()
    for pid in others:
        os.kill(pid, signal.SIGSTOP)

    with receiving(scene.endpoint, respond(200)):
        command = scene.dispatched()
        wait_for(lambda: reached(command, State.DELIVERED), patience_s=90)
    assert "no heartbeat" in workers.log.read_text()
