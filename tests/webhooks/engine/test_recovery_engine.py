"""What goes wrong inside a worker or between it and PostgreSQL, and costs nothing but time."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection, transaction
from django.db.models.functions import Now
from psycopg.errors import IdleInTransactionSessionTimeout
from pytest_django import Settings

from commands.models import Command
from commands.rules.states import State
from tests import factories
from tests.factories import Scene
from tests.receivers import respond
from tests.scenarios.workers import receiving, wait_for
from webhooks.endpoints import address_policy
from webhooks.engine import broker as broker_module
from webhooks.engine import claims, heartbeat, recorder, tasks
from webhooks.engine import pump as pump_module
from webhooks.engine.attempts import make
from webhooks.engine.broker import ClockBroker
from webhooks.engine.pump import Pump
from webhooks.engine.recorder import Outcome
from webhooks.engine.sender import Answer, Sender, SenderConfig
from webhooks.models import Attempt, Delivery, Heartbeat

pytestmark = pytest.mark.django_db(transaction=True)

THREADS = 2


def settled(command: Command) -> bool:
    return Command.objects.exclude(state=State.QUEUED).filter(pk=command.pk).exists()


@pytest.fixture
def pump(scene: Scene, loopback_allowed: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pump]:
    """One that looks for work by itself at once, and tries again at once."""
    monkeypatch.setattr(pump_module, "LOOK_S", 0.02)
    monkeypatch.setattr(pump_module, "DATABASE_RETRY_S", 0.01)
    sender = Sender(SenderConfig(deadline_s=1.0, addresses=address_policy()))
    running = Pump(sender, threads=THREADS)
    running.start()
    yield running
    running.stop()


# --- sessions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        # What a client that is cut off in a transaction has locked is free after this.
        ("idle_in_transaction_session_timeout", "15s"),
        # And this ends a session that waits for such a lock on behalf of a client that is gone.
        ("client_connection_check_interval", "5s"),
    ],
)
def test_the_server_ends_sessions_whose_client_is_gone(name: str, value: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW {name}")
        assert cursor.fetchone() == (value,)


def test_a_result_whose_session_is_ended_in_its_transaction_is_recorded_by_the_next(
    scene: Scene, pump: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the process was suspended there: the error is no OperationalError, yet nobody's fault."""
    record = recorder.record
    slept = threading.Event()

    def record_after_a_long_sleep(batch: Sequence[Outcome]) -> int:
        if slept.is_set():
            return record(batch)
        slept.set()
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 1")
            pid = connection.connection.info.backend_pid
            wait_for(lambda: is_gone(pid))
            return record(batch)

    monkeypatch.setattr(recorder, "record", record_after_a_long_sleep)
    with receiving(scene.endpoint, respond(200)):
        command = scene.dispatched()
        wait_for(lambda: settled(command))
    assert slept.is_set()
    assert Attempt.objects.get().verdict == "delivered"


def test_a_process_that_falls_silent_in_a_claim_holds_up_the_others_only_for_a_moment(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claims, "CLAIM_SILENCE", "50ms")
    scene.send()
    with another_session() as silent:
        silent.execute("BEGIN")
        silent.execute(claims.TAKE_TURN, [claims.CLAIM_SILENCE, claims.CLAIM_LOCK])

        assert len(claims.claim(1, factories.WORKER)) == 1

        with pytest.raises(IdleInTransactionSessionTimeout):
            silent.execute("SELECT 1")


@contextmanager
def another_session() -> Iterator[psycopg.Connection[Any]]:
    parameters = connection.get_connection_params()
    for django_only in ("cursor_factory", "context", "prepare_threshold"):
        parameters.pop(django_only, None)
    other = psycopg.connect(**parameters, autocommit=True)
    try:
        yield other
    finally:
        other.close()


def is_gone(pid: int) -> bool:
    with another_session() as other:
        found = other.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", [pid])
        return found.fetchone() is None


def test_a_clock_that_cannot_start_waits_for_the_database(
    scene: Scene, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error would end django-q2's pusher, after ten seconds of sleep."""
    settings.CLOCK_TICKS = {}
    listen, refusals = broker_module._listen, [psycopg.OperationalError("starting up")] * 2

    def listen_once_it_is_up() -> psycopg.Connection[Any]:
        if refusals:
            raise refusals.pop()
        return listen()

    monkeypatch.setattr(broker_module, "_listen", listen_once_it_is_up)
    broker = ClockBroker("console")
    assert [broker.dequeue(), broker.dequeue()] == [None, None]

    scene.dispatched()
    assert broker.dequeue()
    connection.close()


# --- the pump -----------------------------------------------------------------------------------


def test_a_pump_that_nobody_wakes_delivers_all_the_same(scene: Scene, pump: Pump) -> None:
    """The queue of its pool is frozen: no task reaches a worker."""
    with receiving(scene.endpoint, respond(200)):
        command = scene.dispatched()
        wait_for(lambda: settled(command))


def test_an_attempt_that_cannot_get_a_thread_costs_no_slot(
    scene: Scene, pump: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit = ThreadPoolExecutor.submit
    refused: list[object] = []

    def refuse_at_first(
        self: ThreadPoolExecutor, work: Callable[..., Any], *args: Any
    ) -> Future[Any]:
        future = submit(self, work, *args)
        if len(refused) < 3 * THREADS:
            refused.append(args)
            raise RuntimeError("can't start new thread")
        return future

    monkeypatch.setattr(ThreadPoolExecutor, "submit", refuse_at_first)
    with receiving(scene.endpoint, respond(200)):
        commands = [scene.dispatched() for _ in range(8 * THREADS)]
        for command in commands:
            wait_for(lambda one=command: settled(one) or lease_gone(one))  # type: ignore[misc]
    wait_for(lambda: pump._slots.free == THREADS)


def lease_gone(command: Command) -> bool:
    """Let an attempt that was claimed and never sent run out, as thirty seconds would."""
    Delivery.objects.filter(command_id=command.pk, lease_until__isnull=False).update(
        lease_until=Now() - timedelta(minutes=1)
    )
    return tasks.sweep_leases() > 0


def test_a_fault_in_judging_an_answer_is_a_lost_attempt(
    scene: Scene, loopback_allowed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer_nonsense(self: Sender, outgoing: object) -> Answer:
        return None  # type: ignore[return-value]

    monkeypatch.setattr(Sender, "send", answer_nonsense)
    _, claimed = scene.on_the_wire()
    assert make(Sender(SenderConfig(addresses=address_policy())), claimed).verdict == "lost"


# --- sweeps -------------------------------------------------------------------------------------


def test_an_attempt_that_cannot_be_closed_holds_up_no_other(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    poison, _ = scene.on_the_wire()
    others = [scene.on_the_wire()[0] for _ in range(3)]
    Delivery.objects.update(lease_until=Now() - timedelta(minutes=1))
    record = recorder.record

    def refuse_poison(outcomes: Sequence[Outcome]) -> int:
        if any(outcome.delivery_id == poison.delivery_id for outcome in outcomes):
            raise ValueError("this cannot be stored")
        return record(outcomes)

    monkeypatch.setattr(recorder, "record", refuse_poison)
    with caplog.at_level(logging.ERROR):
        assert tasks.sweep_leases() == len(others)
    assert "cannot be closed" in caplog.text
    assert not Attempt.objects.exclude(delivery=poison.delivery_id).filter(verdict="").exists()


def test_a_sweep_without_a_database_does_not_try_each_attempt(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        scene.on_the_wire()
    Delivery.objects.update(lease_until=Now() - timedelta(minutes=1))
    tried: list[int] = []

    def be_away(outcomes: Sequence[Outcome]) -> int:
        tried.append(len(outcomes))
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(recorder, "record", be_away)
    with pytest.raises(OperationalError):
        tasks.sweep_leases()
    assert tried == [3]


def test_a_lost_attempt_leaves_an_endpoint_all_of_its_concurrency(
    scene: Scene, settings: Settings
) -> None:
    """A worker died: that says nothing about the receiver."""
    factories.record(factories.answer(factories.claim(scene.send()), 200))
    lost = factories.claim(scene.send())
    factories.record(factories.lost(lost))
    Delivery.objects.filter(pk=lost.delivery_id).update(next_attempt_at=Now() + timedelta(hours=1))
    for _ in range(settings.ENDPOINT_MAX_IN_FLIGHT):
        scene.send()

    taken = claims.claim(100, factories.WORKER)

    assert len(taken) == settings.ENDPOINT_MAX_IN_FLIGHT


# --- signs of life ------------------------------------------------------------------------------


def done(**facts: Any) -> dict[str, Any]:
    return {"func": heartbeat.PROBE, "success": True} | facts


def test_the_monitor_writes_the_heartbeat_when_the_probe_came_through(scene: Scene) -> None:
    heartbeat.probe()
    heartbeat.on_result(done())
    assert Heartbeat.objects.count() == 1


@pytest.mark.parametrize("facts", [{"success": False}, {"func": "webhooks.engine.tasks.deliver"}])
def test_no_other_result_is_a_sign_of_life(scene: Scene, facts: dict[str, Any]) -> None:
    heartbeat.on_result(done(**facts))
    assert not Heartbeat.objects.exists()


def test_the_monitor_outlives_a_database_that_is_away(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def be_away() -> None:
        raise OperationalError("the connection is lost")

    monkeypatch.setattr(heartbeat, "beat", be_away)
    heartbeat.on_result(done())
    assert not Heartbeat.objects.exists()


def test_a_pulse_that_nobody_reads_holds_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getppid", os.getpgrp)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    monkeypatch.setenv(heartbeat.PULSE_VARIABLE, str(writer))
    try:
        for _ in range(70_000):
            heartbeat.pulse()
        assert os.read(reader, 2) == b".."
        os.close(reader)
        heartbeat.pulse()
    finally:
        os.close(writer)


def test_a_pool_without_a_watch_has_no_pulse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(heartbeat.PULSE_VARIABLE, raising=False)
    heartbeat.pulse()
