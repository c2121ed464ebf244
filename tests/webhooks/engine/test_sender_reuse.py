"""Connections are kept while that is safe: an attempt is never repeated over a stale one."""

from __future__ import annotations

import pytest

from tests.receivers import (
    Behaviour,
    ScriptedReceiver,
    Visit,
    close_without_answer,
    read_request,
    respond,
    send_bytes,
    then_close,
)
from tests.webhooks.engine.sending import answer_names, in_threads, outgoing, sending
from webhooks.engine.sender import Sender, SenderConfig

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def test_a_connection_is_reused() -> None:
    with ScriptedReceiver(respond(200, b"ok")) as receiver, sending() as sender:
        answers = [sender.send(outgoing(receiver.url)) for _ in range(5)]
    assert {answer.status_code for answer in answers} == {200}
    assert (receiver.connections, len(receiver.requests)) == (1, 5)


@pytest.mark.parametrize(
    "first",
    [
        respond(200, headers={"Connection": "close"}),
        respond(200, b"x" * 50_000),
        send_bytes(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"),
        then_close(send_bytes(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab")),
    ],
    ids=["close", "unread body", "HTTP/1.0", "short body"],
)
def test_a_connection_is_not_reused_after(first: Behaviour) -> None:
    with ScriptedReceiver(first, respond()) as receiver, sending() as sender:
        answers = [sender.send(outgoing(receiver.url)) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert receiver.connections == 2


@pytest.mark.parametrize("window", [{"idle_reuse_s": 0.0}, {"idle_settle_s": 30.0}])
def test_a_connection_is_not_reused_too_late_or_too_soon(window: dict[str, float]) -> None:
    with ScriptedReceiver() as receiver, sending(**window) as sender:
        answers = [sender.send(outgoing(receiver.url)) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert receiver.connections == 2


def test_a_receiver_that_closes_without_saying_so_loses_nothing() -> None:
    with ScriptedReceiver(then_close(respond())) as receiver, sending(idle_settle_s=0.02) as sender:
        batches = in_threads(8, lambda: [sender.send(outgoing(receiver.url)) for _ in range(12)])
    assert {answer.status_code for batch in batches for answer in batch} == {200}
    assert len(receiver.requests) == 96


def once_a_connection(visit: Visit) -> None:
    """Answer one request. Whatever follows meets a connection that is closed just then."""
    read_request(visit.sock)
    visit.send(OK)
    visit.sock.recv(1)


def let_it_rest(sender: Sender, seconds: float) -> None:
    """As if so much time had passed since the last answer."""
    for connection in sender._wire.idle._waiting:
        connection.idle_since -= seconds


@pytest.mark.parametrize("pause", [0.9, 1.0, 1.1])
def test_a_receiver_that_closes_what_is_idle_for_a_second_never_costs_an_attempt(
    pause: float,
) -> None:
    window = {"idle_settle_s": SenderConfig.idle_settle_s}
    with ScriptedReceiver(at_connect=once_a_connection) as receiver, sending(**window) as sender:
        for _ in range(20):
            assert sender.send(outgoing(receiver.url)).error_kind is None
            let_it_rest(sender, pause)
    assert receiver.connections == 20


def test_an_answer_that_nobody_asked_for_is_not_taken_for_the_next() -> None:
    with ScriptedReceiver(send_bytes(OK), respond(503)) as receiver, sending() as sender:
        sender.send(outgoing(receiver.url))
    unasked = OK + b"HTTP/1.1 200 Forged\r\nContent-Length: 9000\r\n\r\n" + b"x" * 9000
    with ScriptedReceiver(send_bytes(unasked), respond(503)) as receiver, sending() as sender:
        sender.send(outgoing(receiver.url))
        assert sender.send(outgoing(receiver.url)).status_code == 503


def test_where_a_kept_connection_was_closed_none_is_kept() -> None:
    script = [respond(), close_without_answer, respond()]
    with ScriptedReceiver(*script) as receiver, sending() as sender:
        kinds = [sender.send(outgoing(receiver.url)).error_kind for _ in range(4)]
    assert kinds == [None, "connection_reset", None, None]
    assert (receiver.connections, len(receiver.requests)) == (3, 4)


def test_a_connection_serves_one_server_name_only(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_names(monkeypatch, {"a.example": ["127.0.0.1"], "b.example": ["127.0.0.1"]})
    with ScriptedReceiver() as receiver, sending() as sender:
        for name in ["a.example", "b.example", "a.example"]:
            assert sender.send(outgoing(f"http://{name}:{receiver.port}/")).status_code == 200
    assert receiver.connections == 2


def test_kept_connections_are_limited_in_number() -> None:
    with (
        ScriptedReceiver() as one,
        ScriptedReceiver() as two,
        sending(max_idle=1) as sender,
    ):
        for receiver in [one, two, one]:
            assert sender.send(outgoing(receiver.url)).status_code == 200
    assert (one.connections, two.connections) == (2, 1)


def test_a_closed_sender_keeps_no_connection() -> None:
    with ScriptedReceiver() as receiver, sending() as sender:
        sender.close()
        for _ in range(2):
            assert sender.send(outgoing(receiver.url)).status_code == 200
    assert receiver.connections == 2
