"""The pump in this process: claims, sends over real sockets, records."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.db import OperationalError
from pytest_django import Settings

from commands.models import Command
from commands.rules.states import State
from tests.factories import Scene
from tests.receivers import close_without_answer, redirect_to, respond
from tests.scenarios.workers import receiving, wait_for
from webhooks.endpoints import address_policy
from webhooks.engine import attempts, claims, recorder, tasks
from webhooks.engine import pump as pump_module
from webhooks.engine.pump import Pump
from webhooks.engine.recorder import Outcome
from webhooks.engine.sender import Sender, SenderConfig
from webhooks.models import Attempt, Delivery, EndpointSecret
from webhooks.rules.verdicts import Verdict

pytestmark = pytest.mark.django_db(transaction=True)

DEADLINE_S = 1.0


@pytest.fixture
def pump(scene: Scene, loopback_allowed: None) -> Iterator[Pump]:
    sender = Sender(SenderConfig(deadline_s=DEADLINE_S, addresses=address_policy()))
    running = Pump(sender, threads=4)
    running.start()
    yield running
    running.stop()


def settled(command: Command) -> bool:
    return Command.objects.exclude(state=State.QUEUED).filter(pk=command.pk).exists()


def only_attempt() -> Attempt:
    return Attempt.objects.get()


def test_a_woken_pump_delivers_what_is_due(scene: Scene, pump: Pump) -> None:
    with receiving(scene.endpoint, respond(200, b"thanks")):
        command = scene.dispatched()
        pump.wake()
        wait_for(lambda: settled(command))

    attempt = only_attempt()
    assert (attempt.verdict, attempt.status_code, attempt.phase, attempt.excerpt_text) == (
        "delivered",
        200,
        "body",
        "thanks",
    )
    assert attempt.started_at is not None
    assert attempt.claimed_at <= attempt.started_at


def test_more_work_than_threads_is_worked_off_without_another_wake_up(
    scene: Scene, pump: Pump
) -> None:
    with receiving(scene.endpoint, respond(200)) as receiver:
        commands = [scene.dispatched() for _ in range(30)]
        pump.wake()
        wait_for(lambda: all(settled(command) for command in commands))
    assert len(receiver.requests) == Attempt.objects.count() == 30


@pytest.mark.parametrize(
    ("script", "verdict", "error_kind"),
    [
        (redirect_to("http://127.0.0.1:9/elsewhere"), "failed", ""),
        (respond(404), "failed", ""),
        (respond(503), "retry", ""),
        (respond(429, headers={"Retry-After": "3600"}), "retry", ""),
        (close_without_answer, "retry", "connection_reset"),
    ],
)
def test_an_answer_is_judged_by_the_policy(
    scene: Scene, pump: Pump, script: object, verdict: str, error_kind: str
) -> None:
    with receiving(scene.endpoint, script) as receiver:  # type: ignore[arg-type]
        scene.dispatched()
        pump.wake()
        wait_for(lambda: Attempt.objects.exclude(finished_at=None).exists())
    assert (only_attempt().verdict, only_attempt().error_kind) == (verdict, error_kind)
    assert only_attempt().phase == ("headers" if error_kind else "body")
    assert len(receiver.requests) == 1


def test_a_retry_after_moves_nothing(scene: Scene, pump: Pump) -> None:
    with receiving(scene.endpoint, respond(503, headers={"Retry-After": "3600"})):
        scene.dispatched()
        pump.wake()
        wait_for(lambda: Attempt.objects.exclude(finished_at=None).exists())
    attempt = only_attempt()
    assert attempt.retry_after == "3600"
    assert attempt.finished_at is not None
    assert attempt.next_attempt_at is not None
    assert (attempt.next_attempt_at - attempt.finished_at).total_seconds() == 5


def test_a_fault_of_ours_is_a_lost_attempt_and_the_schedule_goes_on(
    scene: Scene, pump: Pump
) -> None:
    EndpointSecret.objects.update(ciphertext="unreadable")
    scene.dispatched()
    pump.wake()
    wait_for(lambda: Attempt.objects.exclude(finished_at=None).exists())

    assert only_attempt().verdict == Verdict.LOST
    assert "SecretUnreadable" in only_attempt().error
    assert Delivery.objects.get().next_attempt_at is not None


def test_a_worker_that_slept_past_its_lease_sends_nothing(
    scene: Scene, settings: Settings, loopback_allowed: None
) -> None:
    sender = Sender(SenderConfig(addresses=address_policy()))
    with receiving(scene.endpoint) as receiver:
        scene.dispatched()
        [claimed] = claims.claim(1, "worker")
        woken_late = replace(claimed, claimed_monotonic=claimed.claimed_monotonic - 16)
        outcome = attempts.make(sender, woken_late)
    assert outcome.verdict == Verdict.LOST
    assert receiver.requests == []


def test_results_wait_for_a_database_that_is_away(
    scene: Scene, pump: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pump_module, "DATABASE_RETRY_S", 0.01)
    away, record = threading.Event(), recorder.record

    def record_once_it_is_back(batch: list[Outcome]) -> int:
        if not away.is_set():
            away.set()
            raise OperationalError("the connection is lost")
        return record(batch)

    monkeypatch.setattr(recorder, "record", record_once_it_is_back)
    with receiving(scene.endpoint) as receiver:
        command = scene.dispatched()
        pump.wake()
        wait_for(lambda: settled(command))
    assert away.is_set()
    assert len(receiver.requests) == 1


def test_a_result_that_the_database_refuses_holds_up_no_other(
    scene: Scene, pump: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = recorder.record
    poison = scene.dispatched(name="poison")
    assert poison.delivery_id

    def refuse_poison(batch: list[Outcome]) -> int:
        if any(outcome.delivery_id == poison.delivery_id for outcome in batch):
            raise ValueError("this batch cannot be stored")
        return record(batch)

    monkeypatch.setattr(recorder, "record", refuse_poison)
    with receiving(scene.endpoint):
        others = [scene.dispatched() for _ in range(5)]
        pump.wake()
        wait_for(lambda: all(settled(command) for command in others))
    assert not settled(poison)
    assert Delivery.objects.get(pk=poison.delivery_id).lease_until is not None


def test_the_wake_up_task_starts_the_process_own_pump(
    scene: Scene, pump: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "pump", lambda: pump)
    with receiving(scene.endpoint):
        command = scene.dispatched()
        tasks.deliver()
        wait_for(lambda: settled(command))
