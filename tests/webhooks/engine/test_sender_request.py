"""What goes out: the bytes on the wire, and what the environment and the receiver cannot change."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests
import responses

from tests.receivers import (
    ScriptedReceiver,
    Visit,
    redirect_to,
    respond,
    send_bytes,
    then_close,
)
from tests.webhooks.engine.sending import BODY, answer_names, outgoing, post_once, sending

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def test_the_body_arrives_byte_for_byte() -> None:
    body = '{"name":"café 😀","x":1.10,"n":12345678901234567890123,"a":1,"a":2}'.encode()
    with ScriptedReceiver() as receiver:
        answer = post_once(receiver.url, body)
    assert answer.status_code == 200
    [request] = receiver.requests
    assert request.body == body
    assert request.headers["content-length"] == str(len(body))


def test_the_request_is_a_plain_post_with_our_headers_and_no_others() -> None:
    with ScriptedReceiver() as receiver, sending(user_agent="console/1") as sender:
        url = f"http://127.0.0.1:{receiver.port}/a/b?token=t&x=%20"
        sender.send(outgoing(url, headers={"webhook-id": "msg_1"}))
    [request] = receiver.requests
    assert request.line == "POST /a/b?token=t&x=%20 HTTP/1.1"
    assert request.headers == {
        "webhook-id": "msg_1",
        "host": f"127.0.0.1:{receiver.port}",
        "user-agent": "console/1",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "content-length": str(len(BODY)),
    }


def test_the_host_header_is_the_registered_name(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_names(monkeypatch, {"receiver.example": ["127.0.0.1"]})
    with ScriptedReceiver() as receiver:
        answer = post_once(f"http://Receiver.Example.:{receiver.port}")
    assert answer.address == "127.0.0.1"
    [request] = receiver.requests
    assert request.line == "POST / HTTP/1.1"
    assert request.headers["host"] == f"receiver.example:{receiver.port}"


@pytest.mark.parametrize("name", ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"])
def test_proxies_of_the_environment_see_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_PROXY", raising=False)
    with ScriptedReceiver() as proxy, ScriptedReceiver() as receiver:
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        monkeypatch.setenv(name.lower(), f"http://127.0.0.1:{proxy.port}")
        assert post_once(receiver.url).status_code == 200
    assert (proxy.connections, len(receiver.requests)) == (0, 1)


def test_netrc_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login somebody password something\n")
    monkeypatch.setenv("NETRC", str(netrc))
    with ScriptedReceiver() as receiver:
        post_once(receiver.url)
    assert "authorization" not in receiver.requests[0].headers


def test_cookies_are_not_kept() -> None:
    with ScriptedReceiver(respond(headers={"Set-Cookie": "a=b"})) as receiver, sending() as sender:
        sender.send(outgoing(receiver.url))
        sender.send(outgoing(receiver.url))
    assert "cookie" not in receiver.requests[1].headers


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_reported_and_not_followed(status: int) -> None:
    with ScriptedReceiver() as other, ScriptedReceiver(redirect_to(other.url, status)) as receiver:
        answer = post_once(receiver.url)
    assert (answer.status_code, answer.location) == (status, other.url)
    assert (len(receiver.requests), other.connections) == (1, 0)


def test_a_location_is_shown_without_its_control_characters() -> None:
    with ScriptedReceiver(redirect_to("/caf\xc3\xa9\x00\x1b[2J")) as receiver:
        answer = post_once(receiver.url)
    assert answer.location == "/café\ufffd\ufffd[2J"


@pytest.mark.parametrize(
    "status", [200, 201, 202, 204, 206, 226, 299, 304, 400, 404, 408, 425, 429, 500, 503, 599]
)
def test_a_status_is_reported_after_one_post(status: int) -> None:
    with ScriptedReceiver(respond(status, headers={"Retry-After": "120"})) as receiver:
        answer = post_once(receiver.url)
    assert (answer.status_code, answer.error_kind, answer.error) == (status, None, "")
    assert answer.retry_after == "120"
    assert len(receiver.requests) == 1
    assert answer.started <= answer.finished


@pytest.mark.parametrize("status", [101, 600, 999])
def test_a_status_that_http_does_not_have_is_no_answer(status: int) -> None:
    with ScriptedReceiver(respond(status)) as receiver:
        answer = post_once(receiver.url)
    assert (answer.status_code, answer.error_kind) == (None, "protocol")


@pytest.mark.parametrize("interim", ["100 Continue", "102 Processing", "103 Early Hints"])
def test_interim_answers_are_no_verdict(interim: str) -> None:
    before = f"HTTP/1.1 {interim}\r\nLink: </a>\r\n\r\n".encode()
    with ScriptedReceiver(send_bytes(before * 2 + OK)) as receiver:
        assert post_once(receiver.url).status_code == 200


def test_an_answer_that_comes_before_the_whole_request_counts() -> None:
    def refuse_early(visit: Visit) -> None:
        visit.sock.recv(1000)
        respond(413)(visit)

    with ScriptedReceiver(at_connect=then_close(refuse_early)) as receiver:
        answer = post_once(receiver.url, b"x" * 20_000_000)
    assert (answer.status_code, answer.error_kind) == (413, None)


def test_a_header_with_a_line_break_is_a_fault_of_ours() -> None:
    with (
        ScriptedReceiver() as receiver,
        sending() as sender,
        pytest.raises(ValueError, match="X-Webhook-Event"),
    ):
        sender.send(outgoing(receiver.url, headers={"X-Webhook-Event": "a\r\nHost: b"}))


@responses.activate
def test_a_double_of_requests_can_stand_in_for_the_wire() -> None:
    url = "https://receiver.example/hook"
    responses.post(url, status=503, body="busy", headers={"Retry-After": "7"})
    responses.post(url, body=requests.ConnectTimeout())
    responses.post(url, body=requests.exceptions.SSLError())
    responses.post(url, body=requests.ConnectionError())
    with sending() as sender:
        first, *others = [sender.send(outgoing(url)) for _ in range(4)]
    assert (first.status_code, first.excerpt, first.retry_after) == (503, b"busy", "7")
    assert [answer.error_kind for answer in others] == ["timeout", "tls", "connection_reset"]
    assert responses.calls[0].request.body == BODY
