"""The whole attempt has one deadline, whatever the receiver does to stretch it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.receivers import (
    Authority,
    Behaviour,
    ScriptedReceiver,
    Visit,
    drip,
    endless_100_continue,
    hang,
    repeat,
    respond,
    send_bytes,
    then_close,
)
from tests.webhooks.engine.sending import (
    black_hole,
    in_threads,
    outgoing,
    post_once,
    sending,
)
from webhooks.engine.sender import Answer

DEADLINE = 0.5


def assert_timed_out(answer: Answer, phase: str) -> None:
    assert (answer.error_kind, answer.phase, answer.status_code) == ("timeout", phase, None)
    # Late by no more than a busy machine makes it.
    assert DEADLINE - 0.01 <= answer.finished - answer.started < DEADLINE + 0.5


@pytest.mark.parametrize(
    "behaviour",
    [
        hang,
        drip(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", every=0.1),
        repeat(b"X: y\r\n", 0.1, after=b"HTTP/1.1 200 OK\r\n"),
        repeat(b"x", 0.1, after=b"HTTP/1.1 200 OK\r\nX: "),
        endless_100_continue(0.1),
        repeat(b"HTTP/1.1 103 Early Hints\r\n\r\n", 0.1),
    ],
    ids=["silence", "drip", "endless headers", "endless header", "100 for ever", "103 for ever"],
)
@pytest.mark.parametrize("tls", [False, True], ids=["http", "https"])
def test_an_answer_that_is_not_complete_in_time_is_a_timeout(
    behaviour: Behaviour, tls: bool, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    pem = authority.issue("127.0.0.1") if tls else None
    with ScriptedReceiver(behaviour, tls=pem) as receiver:
        answer = post_once(receiver.url, deadline_s=DEADLINE, ca_bundle=str(authority.bundle))
    assert_timed_out(answer, "headers")
    assert len(receiver.requests) == 1


def test_a_connection_that_nobody_takes_is_a_timeout() -> None:
    with black_hole() as port:
        answer = post_once(f"http://127.0.0.3:{port}/", deadline_s=DEADLINE)
    assert_timed_out(answer, "connect")


# The start of a TLS record that announces more than ever comes.
RECORD_START = b"\x16\x03\x03\x40\x00"


@pytest.mark.parametrize("behaviour", [hang, repeat(b"\x02", 0.1, after=RECORD_START)])
def test_a_handshake_that_does_not_end_is_a_timeout(behaviour: Behaviour) -> None:
    with ScriptedReceiver(at_connect=behaviour) as receiver:
        answer = post_once(f"https://127.0.0.1:{receiver.port}/", deadline_s=DEADLINE)
    assert_timed_out(answer, "tls")


def sip(visit: Visit) -> None:
    """Read so slowly that the request never ends, but the socket is never quite still."""
    while not visit.wait(0.05):
        visit.sock.recv(10_000)


@pytest.mark.parametrize("behaviour", [hang, sip])
def test_a_request_that_is_not_taken_is_a_timeout(behaviour: Behaviour) -> None:
    with ScriptedReceiver(at_connect=behaviour) as receiver:
        answer = post_once(receiver.url, b"x" * 30_000_000, deadline_s=DEADLINE)
    assert_timed_out(answer, "send")


def test_a_2xx_after_the_deadline_is_a_timeout() -> None:
    def late(visit: Visit) -> None:
        visit.wait(DEADLINE + 0.2)
        respond(200)(visit)

    with ScriptedReceiver(late) as receiver:
        assert_timed_out(post_once(receiver.url, deadline_s=DEADLINE), "headers")


def test_slow_receivers_leave_no_sender_behind() -> None:
    with (
        ScriptedReceiver(endless_100_continue(0.1)) as slow,
        ScriptedReceiver() as healthy,
        sending(deadline_s=DEADLINE) as sender,
    ):
        for answer in in_threads(16, lambda: sender.send(outgoing(slow.url))):
            assert answer.error_kind == "timeout"
        assert sender.send(outgoing(healthy.url)).status_code == 200


def test_the_words_say_where_the_time_went() -> None:
    with (
        ScriptedReceiver(then_close(send_bytes(b"")), hang) as receiver,
        sending(deadline_s=DEADLINE) as sender,
    ):
        sender.send(outgoing(receiver.url))
        answer = sender.send(outgoing(receiver.url))
    assert "did not answer completely (status line and headers) within 0.5 s" in answer.error
