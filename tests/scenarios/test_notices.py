"""Owners and operators are told by mail: real workers, a real receiver, a real mail server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.models import Command
from commands.rules.states import State
from organizations.models import Notice
from tests.factories import Scene
from tests.mail_sink import MailSink, misbehaving, say_nothing
from tests.receivers import respond
from tests.scenarios.workers import Workers, receiving, wait_for
from webhooks.models import Endpoint, Heartbeat

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def sink() -> Iterator[MailSink]:
    with MailSink() as running:
        yield running


def reached(command: Command, state: State) -> bool:
    return Command.objects.filter(pk=command.pk, state=state).exists()


def subjects(sink: MailSink, address: str) -> list[str]:
    return [str(message["Subject"]) for message in sink.mails if message["To"] == address]


def test_twenty_failures_disable_an_endpoint_and_each_owner_gets_one_mail(
    scene: Scene, sink: MailSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMAIL_URL", sink.url)
    Endpoint.objects.filter(pk=scene.endpoint.pk).update(name="Gateway", max_in_flight=20)
    with receiving(scene.endpoint, respond(503)):
        issued = [scene.dispatched() for _ in range(24)]
        with Workers.at_work(tmp_path):
            wait_for(lambda: not Endpoint.objects.get(pk=scene.endpoint.pk).enabled)
            wait_for(lambda: subjects(sink, scene.owner.user.email))
            wait_for(lambda: not Notice.objects.exclude(state="sent").exists())

    assert subjects(sink, scene.owner.user.email) == [
        "Endpoint disabled: Gateway (Test organization)"
    ]
    [to_operator] = subjects(sink, scene.operator.user.email)
    assert to_operator == "24 commands failed (Test organization)"
    assert Command.objects.filter(pk__in=[c.pk for c in issued], state=State.FAILED).count() == 24
    assert Notice.objects.count() == 25


def test_a_mail_server_that_hangs_delays_nothing_and_gets_the_notice_when_it_is_well(
    scene: Scene, sink: MailSink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One worker alone: what keeps it, keeps everything."""
    monkeypatch.setenv("DELIVERY_WORKERS", "1")
    scene.in_state("nacked")
    Notice.objects.update(next_try_at=scene.dataset.created_at)
    with misbehaving(say_nothing) as port:
        monkeypatch.setenv("EMAIL_URL", f"smtp://127.0.0.1:{port}")
        with Workers.at_work(tmp_path), receiving(scene.endpoint, respond(200)):
            wait_for(lambda: Notice.objects.filter(lease_until__isnull=False).exists())
            under_way = Notice.objects.get()
            beat = Heartbeat.objects.latest("beat_at").beat_at
            command = scene.dispatched(ack_timeout_s=1)
            wait_for(lambda: reached(command, State.TIMED_OUT))
            wait_for(lambda: Heartbeat.objects.latest("beat_at").beat_at > beat)
            under_way.refresh_from_db()
            assert under_way.lease_until or under_way.error

    Notice.objects.filter(lease_until__isnull=False).update(lease_until=scene.dataset.created_at)
    Notice.objects.filter(next_try_at__isnull=False).update(next_try_at=scene.dataset.created_at)
    monkeypatch.setenv("EMAIL_URL", sink.url)
    with Workers.at_work(tmp_path):
        wait_for(lambda: not Notice.objects.exclude(state="sent").exists())
    assert sorted(sink.recipients) == [scene.operator.user.email] * 2
