"""After the status line and headers the verdict stands: the body is an excerpt for people."""

from __future__ import annotations

import os
import time
import tracemalloc

import pytest

from tests.receivers import (
    Behaviour,
    ScriptedReceiver,
    Visit,
    chunked_endless,
    repeat,
    respond,
    send_bytes,
    then_close,
    then_reset,
)
from tests.webhooks.engine.sending import in_threads, outgoing, post_once, sending

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
SHORT = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"


@pytest.mark.parametrize(
    "body",
    ["naïve".encode("latin-1"), "naïve".encode("utf-16"), b"\xed\xa0\x80", b"\x00\xff", b""],
)
def test_the_excerpt_is_the_bytes_as_they_came(body: bytes) -> None:
    with ScriptedReceiver(respond(200, body)) as receiver:
        answer = post_once(receiver.url)
    assert (answer.excerpt, answer.excerpt_truncated, answer.body_incomplete) == (
        body,
        False,
        False,
    )


@pytest.mark.parametrize(
    ("size", "truncated"),
    [(4095, False), (4096, False), (4097, True), (16384, True), (99999, True)],
)
def test_the_excerpt_is_cut_at_its_limit(size: int, truncated: bool) -> None:
    with ScriptedReceiver(respond(200, b"x" * size)) as receiver:
        answer = post_once(receiver.url)
    assert (len(answer.excerpt), answer.excerpt_truncated) == (min(size, 4096), truncated)
    assert not answer.body_incomplete


def test_a_chunked_body_is_put_together() -> None:
    with ScriptedReceiver(send_bytes(CHUNKED + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")) as receiver:
        answer = post_once(receiver.url)
    assert (answer.excerpt, answer.excerpt_truncated, answer.body_incomplete) == (
        b"abcde",
        False,
        False,
    )


def test_a_body_that_ends_with_the_connection_is_complete() -> None:
    with ScriptedReceiver(then_close(send_bytes(b"HTTP/1.0 200 OK\r\n\r\nabc"))) as receiver:
        answer = post_once(receiver.url)
    assert (answer.excerpt, answer.body_incomplete) == (b"abc", False)


@pytest.mark.parametrize("status", [204, 304])
def test_a_status_without_body_is_not_waited_for(status: int) -> None:
    head = f"HTTP/1.1 {status} Nothing\r\n\r\n".encode()
    with ScriptedReceiver(send_bytes(head)) as receiver, sending(excerpt_grace_s=5) as sender:
        answer = sender.send(outgoing(receiver.url))
        sender.send(outgoing(receiver.url))
        assert time.monotonic() - answer.started < 4
    assert (answer.status_code, answer.excerpt) == (status, b"")
    assert receiver.connections == 1


@pytest.mark.parametrize(
    "behaviour",
    [
        then_close(send_bytes(SHORT)),
        then_close(send_bytes(CHUNKED + b"3\r\nabc\r\n")),
        then_close(send_bytes(CHUNKED + b"5\r\nabc")),
        send_bytes(CHUNKED + b"3\r\nabc\r\nZZ\r\n"),
        then_reset(send_bytes(SHORT)),
        then_reset(send_bytes(CHUNKED + b"3\r\nabc\r\n")),
    ],
    ids=["short", "no last chunk", "short chunk", "bad chunk", "reset", "reset between chunks"],
)
def test_a_body_that_is_broken_off_is_flagged_and_no_failure(behaviour: Behaviour) -> None:
    with ScriptedReceiver(behaviour) as receiver:
        answer = post_once(receiver.url)
    assert (answer.status_code, answer.error_kind) == (200, None)
    assert (answer.excerpt, answer.body_incomplete) == (b"abc", True)
    assert len(receiver.requests) == 1


def then_hang(visit: Visit) -> None:
    visit.send(SHORT)
    visit.wait()


@pytest.mark.parametrize(
    "behaviour",
    [
        repeat(b"x", 0.05, after=b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n"),
        repeat(b"1\r\nx\r\n", 0.05, after=CHUNKED),
        repeat(b"T: x\r\n", 0, after=CHUNKED + b"1\r\nx\r\n0\r\n"),
        chunked_endless(),
        chunked_endless(size=1),
        repeat(b"x" * 65536, 0, after=b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n"),
        repeat(b"x" * 65536, 0, after=b"HTTP/1.1 200 OK\r\n\r\n"),
        then_hang,
    ],
    ids=["drip", "chunk drip", "trailers", "chunks", "tiny chunks", "1 GiB", "no end", "stall"],
)
def test_a_body_without_end_delays_nothing(behaviour: Behaviour) -> None:
    with ScriptedReceiver(behaviour) as receiver:
        answer = post_once(receiver.url)
        took = time.monotonic() - answer.started
    assert (answer.status_code, answer.error_kind) == (200, None)
    assert answer.excerpt
    assert answer.excerpt_truncated
    assert not answer.body_incomplete
    assert took < 1.5


def test_reading_the_excerpt_is_no_part_of_the_attempt() -> None:
    with ScriptedReceiver(
        repeat(b"x", 0.05, after=b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n")
    ) as receiver:
        answer = post_once(receiver.url, excerpt_grace_s=0.5)
        took = time.monotonic() - answer.started
    assert took - (answer.finished - answer.started) > 0.4


def test_a_large_body_costs_no_memory() -> None:
    with ScriptedReceiver(chunked_endless(size=1 << 20)) as receiver, sending() as sender:
        sender.send(outgoing(receiver.url))
        tracemalloc.start()
        try:
            sender.send(outgoing(receiver.url))
            # The receiver runs in this process and holds a chunk of 1 MiB itself.
            assert tracemalloc.get_traced_memory()[1] < 3 << 20
        finally:
            tracemalloc.stop()


def test_descriptors_stay_flat() -> None:
    script = [respond(200, b"x" * size) for size in (0, 100, 20_000, 200_000)] * 75
    script += [then_close(send_bytes(SHORT)), then_close(send_bytes(b""))] * 25
    with ScriptedReceiver(*script) as receiver, sending() as sender:
        in_threads(8, lambda: [sender.send(outgoing(receiver.url)) for _ in range(5)])
        before = len(os.listdir("/proc/self/fd"))
        in_threads(8, lambda: [sender.send(outgoing(receiver.url)) for _ in range(40)])
        after = len(os.listdir("/proc/self/fd"))
    # Both ends of the connections that the eight threads may keep are in this process.
    assert after - before <= 2 * 8
