"""The demo receiver on a real socket: signatures, each behaviour on the wire, its log, its stop."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
import requests
from standardwebhooks import Webhook

from demo.behaviours import BEHAVIOURS
from demo.environment import PROJECT_ROOT
from demo.receiver import ReceiverServer, printable
from tests.demo.parts import (
    OPERATOR_KEY,
    SECRET,
    WAIT_S,
    FakeConsole,
    Sender,
    command_body,
    signed_headers,
    write_demo_file,
)

OTHER_SECRET = "whsec_" + "c2VjcmV0IG9mIHNvbWVvbmUgZWxzZQ=="


# Signatures


def test_a_published_signature_vector_verifies() -> None:
    signed_at = datetime.fromtimestamp(1767225600, UTC)
    body = '{"type":"command.dispatch","data":{"x":1.10,"name":"café"}}'
    expected = "v1,Pq2FauQO++evI4GFE+yDa2UK0Ulus/a1YvlYzdWyCE0="
    assert Webhook(SECRET).sign("msg_0001", signed_at, body) == expected


@pytest.mark.parametrize("header", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_delivery_without_a_signature_header_is_refused(sender: Sender, header: str) -> None:
    answer = sender.post("accept-and-ack", change=lambda headers: headers.__delitem__(header))
    assert answer.status_code == 401
    assert answer.json()["detail"] == "Missing required headers"


@pytest.mark.parametrize(
    ("header", "value", "reason"),
    [
        ("webhook-signature", "v1,AAAA", "No matching signature found"),
        ("webhook-signature", "no comma", "Malformed signature headers"),
        ("webhook-signature", "v1,not-base64!", "Malformed signature headers"),
        ("webhook-id", "msg_another", "No matching signature found"),
        ("webhook-timestamp", "yesterday", "Invalid Signature Headers"),
        ("webhook-timestamp", "1767225600", "Message timestamp too old"),
    ],
)
def test_a_spoilt_signature_is_refused_with_its_reason(
    sender: Sender, header: str, value: str, reason: str
) -> None:
    answer = sender.post("accept-and-ack", change=lambda headers: headers.update({header: value}))
    assert (answer.status_code, answer.json()["detail"]) == (401, reason)
    assert [entry["signatureOk"] for entry in _all_requests(sender)] == [False]


def test_one_good_signature_of_two_is_enough_while_a_secret_rotates(sender: Sender) -> None:
    def add_one(headers: dict[str, str]) -> None:
        headers["webhook-signature"] = f"v1,AAAA {headers['webhook-signature']}"

    assert sender.post("accept-and-silence", change=add_one).status_code == 200


def test_a_body_that_is_not_text_is_refused_not_a_crash(sender: Sender) -> None:
    answer = sender.session.post(
        f"{sender.url}/accept-and-ack",
        data=b"\xff\xfe",
        headers={"webhook-id": "m", "webhook-timestamp": _now(), "webhook-signature": "v1,AAAA"},
        timeout=WAIT_S,
    )
    assert answer.status_code == 401


def test_a_hanging_path_refuses_a_bad_signature_at_once(sender: Sender) -> None:
    spoil = {"webhook-signature": "v1,AAAA"}
    assert sender.post("hang", change=lambda headers: headers.update(spoil)).status_code == 401


def test_the_secret_is_read_again_when_the_file_changes(sender: Sender, demo_path: Path) -> None:
    assert sender.post("accept-and-silence", "command-1").status_code == 200
    write_demo_file(demo_path, OTHER_SECRET)
    assert sender.post("accept-and-silence", "command-2").status_code == 401


def test_a_file_caught_half_written_does_not_unseat_the_secrets(
    sender: Sender, demo_path: Path
) -> None:
    assert sender.post("accept-and-silence", "command-1").status_code == 200
    demo_path.write_text('{"apiKeys": {')
    assert sender.post("accept-and-silence", "command-2").status_code == 200


def test_before_the_demo_is_seeded_a_delivery_is_told_to_come_again(
    sender: Sender, demo_path: Path
) -> None:
    demo_path.unlink()
    assert sender.post("accept-and-ack").status_code == 503
    write_demo_file(demo_path)
    assert sender.post("accept-and-ack").status_code == 200


# Behaviours


def test_accept_and_ack_reports_success_with_the_operators_key(
    sender: Sender, console: FakeConsole
) -> None:
    assert sender.post("accept-and-ack", "command-7").status_code == 200
    report = console.next_report()
    assert report["path"] == "/api/commands/ack"
    assert report["key"] == OPERATOR_KEY
    assert (report["commandId"], report["outcome"]) == ("command-7", "success")


def test_accept_and_reject_reports_a_rejection_and_why(
    sender: Sender, console: FakeConsole
) -> None:
    assert sender.post("accept-and-reject").status_code == 200
    report = console.next_report()
    assert report["outcome"] == "rejection"
    assert report["detail"]


def test_accept_and_silence_never_reports(sender: Sender, console: FakeConsole) -> None:
    assert sender.post("accept-and-silence", "silent").status_code == 200
    sender.post("accept-and-ack", "loud")
    assert console.next_report()["commandId"] == "loud"


def test_flaky_errs_twice_for_each_command_then_accepts_and_reports(
    sender: Sender, console: FakeConsole
) -> None:
    statuses = [
        sender.post("flaky", command, attempt=attempt).status_code
        for attempt in (1, 2, 3)
        for command in ("command-1", "command-2")
    ]
    assert statuses == [503, 503, 503, 503, 200, 200]
    assert console.next_report()["commandId"] == "command-1"
    assert console.next_report()["commandId"] == "command-2"


@pytest.mark.parametrize(("behaviour", "status"), [("broken", 500), ("refuse", 400)])
def test_a_failing_path_fails_every_time(sender: Sender, behaviour: str, status: int) -> None:
    assert [sender.post(behaviour).status_code for _ in range(4)] == [status] * 4


def test_refuse_gives_its_reason_as_a_problem(sender: Sender) -> None:
    answer = sender.post("refuse")
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["status"] == 400


def test_moved_points_elsewhere(sender: Sender) -> None:
    answer = sender.post("moved")
    assert (answer.status_code, answer.headers["Location"]) == (308, "/accept-and-ack")


def test_hang_answers_nothing_until_the_sender_gives_up(sender: Sender) -> None:
    with pytest.raises(requests.ReadTimeout):
        sender.post("hang", timeout=0.2)
    assert len(sender.requests_of("command-1")) == 1


def test_drop_closes_without_answering(sender: Sender) -> None:
    with pytest.raises(requests.ConnectionError, match="without response"):
        sender.post("drop")
    assert len(sender.requests_of("command-1")) == 1


def test_a_path_without_a_behaviour_is_not_found(sender: Sender) -> None:
    assert sender.post("elsewhere").status_code == 404


# Once only


def test_a_delivery_that_comes_twice_is_accepted_twice_and_reported_once(
    sender: Sender, console: FakeConsole
) -> None:
    assert sender.post("accept-and-ack", "first", attempt=1).status_code == 200
    assert sender.post("accept-and-ack", "first", attempt=2).status_code == 200
    assert sender.post("accept-and-ack", "second").status_code == 200
    assert [console.next_report()["commandId"] for _ in range(2)] == ["first", "second"]


def test_an_event_without_a_command_is_accepted_and_not_reported(
    sender: Sender, console: FakeConsole
) -> None:
    assert sender.post("accept-and-ack", webhook_id="ping", body=b'{"type":"ping"}').ok
    sender.post("accept-and-ack", "command-1")
    assert console.next_report()["commandId"] == "command-1"


@pytest.mark.parametrize("first_answer", [(409, {"code": "not_delivered"}), (503, {})])
def test_a_report_that_came_too_early_or_met_an_error_is_made_again(
    sender: Sender, console: FakeConsole, first_answer: tuple[int, dict[str, str]]
) -> None:
    console.script.put(first_answer)
    sender.post("accept-and-ack", "command-1")
    assert [console.next_report()["commandId"] for _ in range(2)] == ["command-1"] * 2


@pytest.mark.parametrize(
    "final_answer", [(202, {}), (409, {"code": "ack_too_late"}), (404, {"code": "not_found"})]
)
def test_a_report_that_was_answered_for_good_is_made_once(
    sender: Sender, console: FakeConsole, final_answer: tuple[int, dict[str, str]]
) -> None:
    console.script.put(final_answer)
    sender.post("accept-and-ack", "command-1")
    sender.post("accept-and-ack", "command-2")
    assert [console.next_report()["commandId"] for _ in range(2)] == ["command-1", "command-2"]


def test_a_report_is_given_up_after_its_last_try(sender: Sender, console: FakeConsole) -> None:
    for _ in range(4):
        console.script.put((500, {}))
    sender.post("accept-and-ack", "hopeless")
    sender.post("accept-and-ack", "next")
    reported = [console.next_report()["commandId"] for _ in range(5)]
    assert reported == ["hopeless"] * 4 + ["next"]


# What it tells


def test_the_request_log_tells_when_and_what_arrived(sender: Sender) -> None:
    before = time.time()
    sender.post("flaky", "command-1", attempt=1)
    sender.post("flaky", "command-1", attempt=2)
    sender.post("flaky", "command-2")
    first, second = sender.requests_of("command-1")
    assert before <= first["arrived"] <= second["arrived"] <= time.time()
    del first["arrived"]
    assert first == {
        "path": "/flaky",
        "webhookId": "msg_command-1",
        "commandId": "command-1",
        "attempt": 1,
        "signatureOk": True,
    }
    assert second["attempt"] == 2


def test_arrival_is_the_first_byte_not_the_last(receiver: ReceiverServer, sender: Sender) -> None:
    with socket.create_connection(("127.0.0.1", receiver.server_port)) as slow:
        slow.sendall(b"POST /accept-and-silence HTTP/1.1\r\nContent-")
        sender.post("accept-and-silence", "meanwhile")
        slow.sendall(b"Length: 2\r\nConnection: close\r\n\r\n{}")
        assert slow.makefile("rb").readline().startswith(b"HTTP/1.1 401")
    by_arrival = sorted(_all_requests(sender), key=lambda entry: float(str(entry["arrived"])))
    assert [entry["commandId"] for entry in by_arrival] == [None, "meanwhile"]


def test_a_connection_is_kept_for_the_next_request(receiver: ReceiverServer) -> None:
    with socket.create_connection(("127.0.0.1", receiver.server_port)) as connection:
        answers = connection.makefile("rb")
        for _ in range(2):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: receiver\r\n\r\n")
            assert answers.readline() == b"HTTP/1.1 200 OK\r\n"
            while answers.readline() != b"\r\n":
                pass
            assert json.loads(answers.read(len(b'{"status": "ok"}'))) == {"status": "ok"}


def test_the_front_page_lists_every_path(sender: Sender) -> None:
    page = sender.session.get(f"{sender.url}/", timeout=WAIT_S).text
    assert all(f"/{name}" in page for name in BEHAVIOURS)


def test_one_line_is_logged_for_each_delivery_without_secret_or_body(
    sender: Sender, console: FakeConsole, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="demo.receiver"):
        sender.post("accept-and-ack", "command-1")
        sender.post("refuse", "command-2", change=lambda h: h.update({"webhook-signature": "x"}))
        console.next_report()
        # A delivery's line is written before its report is made, so the last report is after all.
        sender.post("accept-and-ack", "command-3")
        console.next_report()
    posts = [line for line in caplog.messages if line.startswith("POST ")]
    assert [line.split()[1:3] for line in posts] == [
        ["/accept-and-ack", "200"],
        ["/refuse", "401"],
        ["/accept-and-ack", "200"],
    ]
    assert "Malformed signature headers" in posts[1]
    for private in (SECRET, SECRET.removeprefix("whsec_"), OPERATOR_KEY, "café", "goto-waypoint"):
        assert private not in caplog.text


def test_what_a_sender_wrote_cannot_draw_on_the_terminal() -> None:
    assert printable("\x1b[31mred\r\nPOST /forged") == "?[31mred??POST /forged"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST /refuse HTTP/1.1\r\n\r\n", b"411"),
        (b"POST /refuse HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"411"),
        (b"POST /refuse HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"411"),
        (b"POST /refuse HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", b"413"),
        (b"POST /refuse HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", b"413"),
        (b"not http\r\n\r\n", b"400"),
        (b"PUT /refuse HTTP/1.1\r\n\r\n", b"501"),
    ],
)
def test_a_request_it_cannot_read_gets_an_answer_and_a_close(
    receiver: ReceiverServer, head: bytes, status: bytes
) -> None:
    with socket.create_connection(("127.0.0.1", receiver.server_port)) as connection:
        connection.settimeout(WAIT_S)
        connection.sendall(head)
        answer = connection.makefile("rb").read()
    assert status in answer


# The process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_process_stops_at_once_even_while_it_hangs(
    tmp_path: Path, number: signal.Signals
) -> None:
    write_demo_file(tmp_path / "demo.json")
    with _process(tmp_path, port=_free_port()) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        with socket.create_connection(("127.0.0.1", int(url.rsplit(":", 1)[1]))) as connection:
            connection.sendall(_raw_delivery("hang"))
            assert "POST /hang hang" in process.stdout.readline()
            process.send_signal(number)
            assert process.wait(timeout=WAIT_S) == 0


def test_a_port_in_use_is_said_in_one_line(receiver: ReceiverServer, tmp_path: Path) -> None:
    with _process(tmp_path, port=receiver.server_port) as process:
        output, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 1
    assert output.startswith(f"Cannot listen on port {receiver.server_port}: ")
    assert output.count("\n") == 1


def test_a_malformed_port_is_said_in_one_line(tmp_path: Path) -> None:
    with _process(tmp_path, port="eight thousand") as process:
        output, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 1
    assert output == "RECEIVER_PORT must be a port between 1 and 65535, not 'eight thousand'\n"


def _process(data_dir: Path, port: int | str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "demo.receiver"],
        cwd=PROJECT_ROOT,
        env={**os.environ, "RECEIVER_PORT": str(port), "CONSOLE_DATA_DIR": str(data_dir)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _raw_delivery(behaviour: str) -> bytes:
    body = command_body("command-1")
    headers = {**signed_headers(body, "msg_1", 1), "Content-Length": str(len(body))}
    lines = [f"POST /{behaviour} HTTP/1.1", *(f"{k}: {v}" for k, v in headers.items()), "", ""]
    return "\r\n".join(lines).encode() + body


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        return int(held.getsockname()[1])


def _all_requests(sender: Sender) -> list[dict[str, object]]:
    entries: list[dict[str, object]] = sender.session.get(
        f"{sender.url}/requests", timeout=WAIT_S
    ).json()
    return entries


def _now() -> str:
    return str(int(time.time()))
