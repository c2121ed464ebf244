"""Attempts without an answer: each has a kind, a phase and words that give nothing away."""

from __future__ import annotations

import errno
import socket
import threading
import time
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.receivers import (
    Behaviour,
    ScriptedReceiver,
    Visit,
    close_without_answer,
    repeat,
    reset,
    send_bytes,
    then_close,
)
from tests.webhooks.engine.sending import (
    SECRET_HEADER,
    answer_names,
    black_hole,
    in_threads,
    outgoing,
    post_once,
    sending,
)
from webhooks.engine import exchange, resolver
from webhooks.rules.policies import PRESETS

RECEIVER = "receiver.example"


def test_a_name_that_does_not_resolve_is_a_dns_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_known(host: str) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    answer_names(monkeypatch, not_known)
    answer = post_once(f"https://{RECEIVER}/")
    assert (answer.error_kind, answer.phase, answer.address) == ("dns", "name", None)
    assert answer.error.startswith("receiver.example does not resolve: Name or service not known.")


def test_a_name_without_addresses_is_a_dns_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_names(monkeypatch, {RECEIVER: []})
    assert post_once(f"https://{RECEIVER}/").error_kind == "dns"


def test_a_dns_failure_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes: list[list[str] | OSError] = [
        socket.gaierror(socket.EAI_AGAIN, "Temporary failure"),
        [],
        ["127.0.0.1"],
    ]

    def lookup(host: str) -> list[str]:
        outcome = outcomes.pop(0)
        if isinstance(outcome, OSError):
            raise outcome
        return outcome

    answer_names(monkeypatch, lookup)
    with ScriptedReceiver() as receiver, sending() as sender:
        url = f"http://{RECEIVER}:{receiver.port}/"
        answers = [sender.send(outgoing(url)) for _ in range(3)]
    assert [answer.error_kind for answer in answers] == ["dns", "dns", None]
    assert answers[2].status_code == 200


def test_a_name_whose_servers_are_silent_costs_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    test_over = threading.Event()

    def silent(host: str) -> list[str]:
        test_over.wait(30)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure")

    asked = answer_names(monkeypatch, silent)
    with ScriptedReceiver() as receiver, sending(resolve_s=0.4) as sender:
        waiting = in_threads(20, lambda: sender.send(outgoing(f"https://{RECEIVER}/")))
        healthy = sender.send(outgoing(receiver.url))
    test_over.set()
    assert {(answer.error_kind, answer.phase) for answer in waiting} == {("dns", "name")}
    assert all(answer.error.startswith("DNS timeout") for answer in waiting)
    assert all(answer.finished - answer.started < 2 for answer in waiting)
    assert asked == [RECEIVER]
    assert healthy.status_code == 200


def test_a_burst_to_one_name_asks_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answer_names(monkeypatch, {RECEIVER: ["127.0.0.1"]})
    with ScriptedReceiver() as receiver, sending() as sender:
        url = f"http://{RECEIVER}:{receiver.port}/"
        answers = in_threads(10, lambda: sender.send(outgoing(url)))
    assert {answer.status_code for answer in answers} == {200}
    assert asked == [RECEIVER]


def test_a_receiver_that_moved_is_found_by_the_next_attempt_of_its_schedule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = iter([["127.0.0.2"], ["127.0.0.1"]])
    answer_names(monkeypatch, lambda host: next(answers))
    shortest_wait = min(wait for policy in PRESETS.values() for wait in policy.waits_s[1:])
    with ScriptedReceiver() as receiver, sending() as sender:
        url = f"http://{RECEIVER}:{receiver.port}/"
        assert sender.send(outgoing(url)).error_kind == "connection_refused"
        later = SimpleNamespace(monotonic=lambda: time.monotonic() + shortest_wait)
        monkeypatch.setattr(resolver, "time", later)
        assert sender.send(outgoing(url)).status_code == 200


def test_a_refused_connection_is_told_as_such() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    answer = post_once(f"http://127.0.0.1:{port}/")
    assert (answer.error_kind, answer.phase) == ("connection_refused", "connect")
    assert answer.error.startswith(f"127.0.0.1 port {port} refused the connection.")


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (OSError(errno.ENETUNREACH, "Network is unreachable"), "connection_refused", "unreachable"),
        (OSError(errno.EHOSTUNREACH, "No route to host"), "connection_refused", "No route"),
        (ConnectionResetError(errno.ECONNRESET, "Reset"), "connection_reset", "Nothing was sent"),
    ],
)
def test_a_connection_that_fails_says_how(
    error: OSError, kind: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(exchange, "open_socket", fail)
    answer = post_once("http://127.0.0.1:9999/")
    assert (answer.error_kind, answer.phase) == (kind, "connect")
    assert words in answer.error


def test_the_next_address_is_tried_when_one_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_names(monkeypatch, {RECEIVER: ["127.0.0.2", "127.0.0.1"]})
    with ScriptedReceiver() as receiver:
        answer = post_once(f"http://{RECEIVER}:{receiver.port}/")
    assert (answer.status_code, answer.address) == (200, "127.0.0.1")


def test_an_address_that_swallows_connections_leaves_time_for_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer_names(monkeypatch, {RECEIVER: ["127.0.0.3", "127.0.0.4"]})
    with black_hole("127.0.0.3") as port:
        answer = post_once(f"http://{RECEIVER}:{port}/", deadline_s=1.0)
    # The second one refuses, so it was reached before the deadline.
    assert (answer.error_kind, answer.address) == ("connection_refused", "127.0.0.4")
    assert 0.4 < answer.finished - answer.started < 0.95


def test_a_receiver_that_takes_the_request_and_closes_may_have_processed_it() -> None:
    with ScriptedReceiver(close_without_answer) as receiver:
        answer = post_once(receiver.url)
    assert (answer.error_kind, answer.phase) == ("connection_reset", "headers")
    assert "It may have processed the request" in answer.error
    assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0",
    ],
)
def test_an_answer_that_breaks_off_before_its_headers_end_is_none(head: bytes) -> None:
    with ScriptedReceiver(then_close(send_bytes(head))) as receiver:
        answer = post_once(receiver.url)
    assert (answer.status_code, answer.error_kind) == (None, "connection_reset")
    assert answer.phase == "headers"


def test_a_reset_is_told_as_such() -> None:
    with ScriptedReceiver(reset) as receiver:
        answer = post_once(receiver.url)
    assert (answer.error_kind, answer.phase) == ("connection_reset", "headers")
    assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    "answer_bytes",
    [
        b"SSH-2.0-OpenSSH_9.9\r\n",
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 42 OK\r\n\r\n",
        b"\x15\x03\x01\x00\x02\x02\x16\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nA: " + b"b" * 70_000 + b"\r\n\r\n",
    ],
    ids=["ssh", "http2", "letters", "two digits", "tls alert", "many headers", "long header"],
)
def test_what_is_not_http_is_a_protocol_failure(answer_bytes: bytes) -> None:
    with ScriptedReceiver(then_close(send_bytes(answer_bytes))) as receiver:
        answer = post_once(receiver.url)
    assert (answer.error_kind, answer.phase, answer.status_code) == ("protocol", "headers", None)


def test_a_flood_before_the_answer_ends_before_it_costs_memory() -> None:
    with ScriptedReceiver(repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * 500, 0)) as receiver:
        answer = post_once(receiver.url)
    assert answer.error_kind == "protocol"
    assert answer.finished - answer.started < 4


def echo(visit: Visit) -> None:
    """Send the request back, as a misconfigured TCP echo service does."""
    visit.send(visit.sock.recv(65536))


@pytest.mark.parametrize(
    "behaviour", [echo, close_without_answer, send_bytes(SECRET_HEADER.encode() + b"\r\n")]
)
def test_words_never_repeat_the_query_or_a_header(behaviour: Behaviour) -> None:
    with ScriptedReceiver(at_connect=then_close(behaviour)) as receiver:
        answer = post_once(f"{receiver.url}?token=very-secret")
    assert answer.error_kind in {"protocol", "connection_reset"}
    assert 0 < len(answer.error) <= 500
    assert "very-secret" not in answer.error
    assert SECRET_HEADER not in answer.error


def test_a_shortage_of_ours_is_not_the_receivers_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_descriptor(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(exchange, "open_socket", no_descriptor)
    with sending() as sender, pytest.raises(RuntimeError, match="Too many open files"):
        sender.send(outgoing("http://127.0.0.1:9999/"))


FRAGMENTS = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.0 503\r\n",
        b"HTTP/1.1 103 Hints\r\n\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length: " + b"9" * 5000 + b"\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Location: \xff\xfe\r\n",
        b": no name\r\n",
        b" folded\r\n",
        b"\r\n",
        b"\n",
        b"5\r\nhello\r\n",
        b"-5\r\n",
        b"0\r\n\r\n",
        b"ZZ\r\n",
    ]
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(FRAGMENTS | st.binary(max_size=20), max_size=12))
def test_nothing_that_a_receiver_sends_makes_the_sender_raise(fragments: list[bytes]) -> None:
    with ScriptedReceiver(then_close(send_bytes(b"".join(fragments)))) as receiver:
        answer = post_once(receiver.url, deadline_s=2.0)
    assert (answer.status_code is None) == (answer.error_kind is not None)
    assert len(receiver.requests) == 1
