"""Receivers at their worst, a pump, and PostgreSQL: each POST has a row, and each row an end."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.db.models.functions import Now
from pytest_django import Settings

from tests.factories import Scene, delivery_of, make_due
from tests.receivers import (
    Authority,
    Behaviour,
    ScriptedReceiver,
    chunked_endless,
    close_without_answer,
    drip,
    hang,
    repeat,
    respond,
    send_bytes,
    then_close,
    then_reset,
)
from tests.scenarios.workers import receiving, wait_for
from tests.webhooks.engine.sending import answer_names
from webhooks.endpoints import address_policy
from webhooks.engine import pump as pump_module
from webhooks.engine import resolver, tasks
from webhooks.engine.pump import Pump
from webhooks.engine.sender import Sender, SenderConfig
from webhooks.models import Attempt, Delivery, Endpoint
from webhooks.policies import POLICIES
from webhooks.rules.policies import DisableRule, Policy, RuleKind

pytestmark = pytest.mark.django_db(transaction=True)

THREADS = 4
DEADLINE_S = 2.0
# Many times what a claim takes.
A_WHILE = timedelta(seconds=0.4)


@pytest.fixture
def pump(scene: Scene, loopback_allowed: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pump]:
    monkeypatch.setattr(pump_module, "LOOK_S", 0.02)
    sender = Sender(SenderConfig(deadline_s=DEADLINE_S, addresses=address_policy()))
    running = Pump(sender, threads=THREADS)
    running.start()
    yield running
    running.stop()


def attempts(delivery: Delivery) -> list[Attempt]:
    return list(Attempt.objects.filter(delivery=delivery).order_by("number"))


def finished(delivery: Delivery, count: int = 1) -> bool:
    """Whether so many attempts have ended."""
    made = Attempt.objects.filter(delivery=delivery, finished_at__isnull=False)
    return made.count() == count


def settled(delivery: Delivery) -> bool:
    """Whether it is over; what waits for its next attempt is brought forward to now."""
    make_due(delivery.pk)
    return delivery_of(delivery).settled_at is not None


# --- slow receivers -----------------------------------------------------------------------------

DRIP = drip(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", every=0.9 * DEADLINE_S)


@pytest.mark.parametrize("slow", [DRIP, hang], ids=["drip", "silence"])
def test_as_many_slow_receivers_as_threads_delay_nobody_else(
    scene: Scene, pump: Pump, slow: Behaviour
) -> None:
    healthy = scene.another_endpoint()
    with receiving(scene.endpoint, slow) as stuck, receiving(healthy, respond(200)):
        waiting = [scene.send() for _ in range(2 * THREADS)]
        wait_for(lambda: stuck.requests)
        delivery = scene.send(healthy)
        wait_for(lambda: settled(delivery))

    [attempt] = attempts(delivery)
    assert attempt.verdict == "delivered"
    late = attempt.claimed_at - attempt.due_at
    assert late < timedelta(seconds=DEADLINE_S / 2)
    assert not any(one.status_code for one in Attempt.objects.filter(delivery__in=waiting))


def test_receivers_that_may_fill_all_threads_leave_some_to_whoever_has_nothing_in_flight(
    scene: Scene, pump: Pump, settings: Settings
) -> None:
    """Limits of endpoints add up to more than there are threads."""
    settings.ENDPOINT_UNPROVEN_IN_FLIGHT = settings.ENDPOINT_MAX_IN_FLIGHT = 2 * THREADS
    quiet = scene.another_endpoint()
    with receiving(scene.endpoint, hang) as stuck, receiving(quiet, respond(200)):
        for _ in range(2 * THREADS):
            scene.send()
        wait_for(lambda: len(stuck.requests) == THREADS - THREADS // pump_module.RESERVED)
        delivery = scene.send(quiet)
        wait_for(lambda: settled(delivery))

    [attempt] = attempts(delivery)
    assert attempt.claimed_at - attempt.due_at < timedelta(seconds=DEADLINE_S / 2)


def test_no_transaction_is_open_while_a_receiver_takes_its_time(scene: Scene, pump: Pump) -> None:
    with receiving(scene.endpoint, hang) as receiver:
        delivery = scene.send()
        wait_for(lambda: receiver.requests)
        wait_for(lambda: Attempt.objects.filter(claimed_at__lt=Now() - A_WHILE).exists())

        for state in ("idle in transaction", "active"):
            assert sessions(state) == []
        assert attempts(delivery)[0].finished_at is None


def sessions(state: str) -> list[str]:
    """The last statements of sessions in this state that have a transaction open for long."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT query FROM pg_stat_activity WHERE datname = current_database()"
            " AND backend_type = 'client backend' AND pid <> pg_backend_pid() AND state = %s"
            " AND xact_start < clock_timestamp() - make_interval(secs => %s)",
            [state, A_WHILE.total_seconds() / 2],
        )
        return [query for (query,) in cursor.fetchall()]


# --- answers that are strange -------------------------------------------------------------------

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "excerpt", "cut"),
    [
        (respond(200, b""), b"", False),
        (respond(200, b"<html>\x00\xff\xfe \xed\xa0\x80</html>"), None, False),
        (respond(200, "naïve".encode("latin-1")), b"na\xefve", False),
        (respond(200, b'"a JSON string"'), b'"a JSON string"', False),
        (then_close(send_bytes(HEAD + b"\r\nabc")), b"abc", True),
        (then_reset(send_bytes(HEAD + b"\r\nabc")), b"abc", True),
        (send_bytes(CHUNKED + b"3\r\nabc\r\nZZ\r\n"), b"abc", True),
        (chunked_endless(), b"x" * 4096, True),
        (repeat(b"x", 0.3, after=HEAD + b"\r\nx"), None, True),
    ],
    ids=["empty", "html", "latin-1", "scalar", "short", "reset", "chunk", "endless", "drip"],
)
def test_a_2xx_is_delivered_by_one_post_whatever_its_body(
    scene: Scene, pump: Pump, answer: Behaviour, excerpt: bytes | None, cut: bool
) -> None:
    with receiving(scene.endpoint, answer) as receiver:
        delivery = scene.send()
        wait_for(lambda: settled(delivery))

    [attempt] = attempts(delivery)
    assert (attempt.verdict, attempt.excerpt_truncated) == ("delivered", cut)
    if excerpt is not None:
        assert bytes(attempt.response_excerpt) == excerpt
    assert delivery_of(delivery).state == "delivered"
    assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    "header",
    [
        b"Retry-After: \x00\x01\x1b[31m",
        b"Retry-After: " + b"9" * 5000,
        b"Retry-After: " + "é😀".encode(),
        b"Location: \xff\xfe\xed\xa0\x80\x00",
        b"Location: javascript:" + b"a" * 5000,
    ],
)
def test_whatever_a_header_holds_can_be_recorded(scene: Scene, pump: Pump, header: bytes) -> None:
    bytes_sent = b"HTTP/1.1 503 \xff\xfe\r\nContent-Length: 0\r\n" + header + b"\r\n\r\n"
    with receiving(scene.endpoint, send_bytes(bytes_sent)):
        delivery = scene.send()
        wait_for(lambda: finished(delivery))

    [attempt] = attempts(delivery)
    assert (attempt.verdict, attempt.status_code) == ("retry", 503)
    assert (attempt.retry_after or attempt.location).isprintable()


# --- how many posts -----------------------------------------------------------------------------


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> int:
    """A policy of so many attempts, named ``few``."""
    count: int = request.param
    rule = DisableRule(RuleKind.ATTEMPTS_IN_A_ROW, 100)
    monkeypatch.setitem(POLICIES, "few", Policy("few", (0, 5, 5)[:count], True, rule))
    return count


@pytest.mark.parametrize("tries", [1, 2, 3], indirect=True)
@pytest.mark.parametrize("failure", [respond(500), close_without_answer], ids=["500", "close"])
def test_a_limit_of_n_attempts_is_n_posts_and_n_rows(
    scene: Scene, pump: Pump, tries: int, failure: Behaviour
) -> None:
    endpoint = scene.another_endpoint("few")
    with receiving(endpoint, failure) as receiver:
        delivery = scene.send(endpoint)
        wait_for(lambda: settled(delivery))

    assert len(receiver.requests) == len(attempts(delivery)) == tries
    assert [one.number for one in attempts(delivery)] == list(range(1, tries + 1))
    assert delivery_of(delivery).failure_reason == "attempts_exhausted"


def test_what_is_refused_at_first_is_delivered_when_somebody_listens(
    scene: Scene, pump: Pump
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    Endpoint.objects.filter(pk=scene.endpoint.pk).update(url=f"http://127.0.0.1:{port}/hook")
    delivery = scene.send()
    wait_for(lambda: finished(delivery))
    assert delivery_of(delivery).state == "pending"

    with receiving(scene.endpoint, respond(200)) as receiver:
        wait_for(lambda: settled(delivery))

    refused, delivered = attempts(delivery)
    assert (refused.error_kind, refused.phase) == ("connection_refused", "connect")
    assert (delivered.verdict, len(receiver.requests)) == ("delivered", 1)


def test_a_name_that_fails_to_resolve_twice_is_delivered_to_by_the_third_attempt(
    scene: Scene, pump: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes: list[list[str] | OSError] = [
        socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"),
        socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
        ["127.0.0.1"],
    ]

    def look_up(host: str) -> list[str]:
        outcome = outcomes.pop(0)
        if isinstance(outcome, OSError):
            raise outcome
        return outcome

    answer_names(monkeypatch, look_up)
    monkeypatch.setattr(resolver, "CACHE_SECONDS", 0.0)
    with receiving(scene.endpoint, respond(200)) as receiver:
        Endpoint.objects.filter(pk=scene.endpoint.pk).update(
            url=f"http://receiver.example:{receiver.port}/hook"
        )
        delivery = scene.send()
        wait_for(lambda: settled(delivery))

    assert [one.error_kind for one in attempts(delivery)] == ["dns", "dns", ""]
    assert delivery_of(delivery).state == "delivered"


# --- results that cannot be recorded ------------------------------------------------------------

REFUSE_RESULTS = """
CREATE FUNCTION refuse_results() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'this result is not taken'; END $$;
CREATE TRIGGER a_refusal BEFORE UPDATE ON webhooks_attempt FOR EACH ROW
  WHEN (NEW.response_excerpt = 'poison'::bytea) EXECUTE FUNCTION refuse_results();
"""
TAKE_RESULTS = """
DROP TRIGGER a_refusal ON webhooks_attempt;
DROP FUNCTION refuse_results();
"""


@contextmanager
def poison_refused() -> Iterator[None]:
    """PostgreSQL takes no attempt whose answer was this word."""
    with connection.cursor() as cursor:
        cursor.execute(REFUSE_RESULTS)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(TAKE_RESULTS)


def lease_over(delivery: Delivery) -> None:
    """As if the lease had run out, and the sweep had come."""
    Delivery.objects.filter(pk=delivery.pk, lease_until__isnull=False).update(
        lease_until=Now() - timedelta(minutes=1)
    )
    tasks.sweep_leases()


def test_a_result_that_is_refused_each_time_costs_no_more_posts_than_the_policy_has_attempts(
    scene: Scene, pump: Pump
) -> None:
    """The number of an attempt is taken before its POST, so that even this comes to an end."""
    with poison_refused(), receiving(scene.endpoint, respond(200, b"poison")) as receiver:
        delivery = scene.send()
        for number in range(1, 6):
            wait_for(lambda n=number: len(receiver.requests) == n)  # type: ignore[misc]
            wait_for(lambda: pump._slots.free == THREADS)
            lease_over(delivery)
            make_due(delivery.pk)

        assert delivery_of(delivery).failure_reason == "attempts_exhausted"
        assert len(receiver.requests) == 5
    assert [one.verdict for one in attempts(delivery)] == ["lost"] * 5


def test_a_result_that_is_refused_for_a_while_is_delivered_by_a_later_attempt(
    scene: Scene, pump: Pump
) -> None:
    with receiving(scene.endpoint, respond(200, b"poison")) as receiver:
        with poison_refused():
            delivery = scene.send()
            wait_for(lambda: receiver.requests)
            wait_for(lambda: pump._slots.free == THREADS)
            lease_over(delivery)
        wait_for(lambda: settled(delivery))

    assert [one.verdict for one in attempts(delivery)] == ["lost", "delivered"]
    first, second = receiver.requests
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"]


# --- the settings reach the socket --------------------------------------------------------------


@pytest.fixture
def own_pump(scene: Scene, loopback_allowed: None, settings: Settings) -> Iterator[None]:
    """This process's pump, as a worker makes it, and with the settings as they are when it starts."""
    settings.SENDER_THREADS = 2
    pump_module.pump.cache_clear()
    yield
    pump_module.pump().stop()
    pump_module.pump.cache_clear()


@pytest.mark.usefixtures("own_pump")
def test_the_deadline_of_the_settings_is_that_of_the_socket(
    scene: Scene, settings: Settings
) -> None:
    settings.ATTEMPT_DEADLINE_S = 0.3
    with receiving(scene.endpoint, hang):
        delivery = scene.send()
        tasks.deliver()
        wait_for(lambda: finished(delivery))

    [attempt] = attempts(delivery)
    assert attempt.error_kind == "timeout"
    assert attempt.duration_ms
    assert 290 <= attempt.duration_ms < 1500


@pytest.mark.usefixtures("own_pump")
def test_the_authorities_of_the_settings_are_those_of_the_socket(
    scene: Scene, settings: Settings, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    settings.ENDPOINT_CA_BUNDLE = str(authority.bundle)
    with ScriptedReceiver(tls=authority.issue("127.0.0.1")) as receiver:
        Endpoint.objects.filter(pk=scene.endpoint.pk).update(url=receiver.url)
        delivery = scene.send()
        tasks.deliver()
        wait_for(lambda: finished(delivery))

    assert attempts(delivery)[0].verdict == "delivered"
