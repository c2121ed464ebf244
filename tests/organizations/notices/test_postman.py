"""The thread that sends: nobody waits for it, and it waits for nobody."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from django.db import OperationalError
from pytest_django import Settings

from organizations import tasks
from organizations.models import Notice
from organizations.notices import outbox, postman
from organizations.notices.outbox import Mail
from organizations.notices.postman import Postman
from tests.factories import Scene, new_scene
from tests.mail_sink import MailSink, misbehaving, use
from tests.organizations.notices.posting import fact_for, left_behind, post, tell
from tests.racing import PATIENCE_S
from tests.scenarios.workers import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def scene() -> Scene:
    return new_scene()


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Iterator[Postman]:
    """The process's postman, at work in his thread, for one test."""
    one = Postman()
    monkeypatch.setattr(tasks, "postman", lambda: one)
    one.start()
    yield one
    one.stop()


def test_a_tick_returns_at_once_and_the_mail_goes_out(
    scene: Scene, running: Postman, settings: Settings
) -> None:
    with MailSink() as sink:
        use(settings, sink.port)
        tell(fact_for(scene.operator))
        tasks.send_notices()
        wait_for(lambda: sink.mails)
        wait_for(lambda: Notice.objects.filter(state="sent").exists())


def test_ticks_do_not_wait_for_a_server_that_hangs_nor_pile_up(
    scene: Scene, running: Postman, settings: Settings
) -> None:
    reached = threading.Semaphore(0)
    tell(fact_for(scene.operator), fact_for(scene.owner))
    settings.EMAIL_TIMEOUT = 2
    with misbehaving(lambda _: reached.release()) as port:
        use(settings, port)
        tasks.send_notices()
        assert reached.acquire(timeout=PATIENCE_S)
        began = time.monotonic()
        for _ in range(50):
            tasks.send_notices()
        assert time.monotonic() - began < 1
        # One mail under way, however often somebody looks.
        assert Notice.objects.filter(lease_until__isnull=False).count() == 1
        assert not reached.acquire(blocking=False)


def test_a_tick_with_nothing_due_wakes_nobody(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "postman", lambda: pytest.fail("woken for nothing"))
    outbox.tell([fact_for(scene.operator)])
    tasks.send_notices()


def test_a_mail_that_hangs_at_the_stop_is_left_to_its_lease(
    scene: Scene, settings: Settings
) -> None:
    reached = threading.Semaphore(0)
    tell(fact_for(scene.operator))
    one = Postman()
    one.start()
    with misbehaving(lambda _: reached.release()) as port:
        use(settings, port)
        one.wake()
        assert reached.acquire(timeout=PATIENCE_S)
        began = time.monotonic()
        one.stop()
        assert time.monotonic() - began < postman.STOP_S + 1
        left_behind()
        with MailSink() as sink:
            use(settings, sink.port)
            assert post() == 1
            assert len(sink.mails) == 1
    # The server let go; what the stopped one then makes of it changes nothing.
    one.stop()
    assert Notice.objects.get().state == "sent"


def test_that_a_mail_was_sent_is_recorded_when_the_database_is_back(
    scene: Scene, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever forgot it would send the mail again."""
    monkeypatch.setattr(postman, "DATABASE_RETRY_S", 0.01)
    record, failures = outbox.record_sent, iter([True, True, False])

    def away_at_first(mail: Mail, channel: str) -> None:
        if next(failures):
            raise OperationalError("the database is away")
        record(mail, channel)

    monkeypatch.setattr(outbox, "record_sent", away_at_first)
    tell(fact_for(scene.operator))
    with MailSink() as sink:
        use(settings, sink.port)
        post()
        assert len(sink.mails) == 1
    assert Notice.objects.get().state == "sent"


def test_a_fault_in_the_outbox_does_not_end_the_postman(
    scene: Scene, running: Postman, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim, faults = outbox.claim, iter([True])
    failed = threading.Event()

    def faulty() -> Mail | None:
        if next(faults, False):
            failed.set()
            raise RuntimeError("a fault")
        return claim()

    monkeypatch.setattr(outbox, "claim", faulty)
    with MailSink() as sink:
        use(settings, sink.port)
        tell(fact_for(scene.operator))
        tasks.send_notices()
        assert failed.wait(PATIENCE_S)
        running.wake()
        wait_for(lambda: sink.mails)
