"""TLS: the registered name is verified against our own bundle, and nothing switches that off."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from tests.receivers import (
    Authority,
    Behaviour,
    ScriptedReceiver,
    Visit,
    close_without_answer,
    reset,
    respond,
)
from tests.webhooks.engine.sending import answer_names, outgoing, post_once, sending
from webhooks.engine.sender import Sender, SenderConfig

NAME = "receiver.example"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture(autouse=True)
def resolvable(monkeypatch: pytest.MonkeyPatch) -> None:
    answer_names(monkeypatch, {NAME: ["127.0.0.1"], "www.receiver.example": ["127.0.0.1"]})


def test_the_registered_name_is_asked_for_and_verified(authority: Authority) -> None:
    with ScriptedReceiver(respond(200, b"ok"), tls=authority.issue(NAME)) as receiver:
        answer = post_once(f"https://{NAME}:{receiver.port}/", ca_bundle=str(authority.bundle))
    assert (answer.status_code, answer.excerpt, answer.address) == (200, b"ok", "127.0.0.1")
    assert receiver.server_names == [NAME]
    assert receiver.requests[0].headers["host"] == f"{NAME}:{receiver.port}"


def test_an_address_is_verified_too(authority: Authority) -> None:
    with ScriptedReceiver(tls=authority.issue("127.0.0.1")) as receiver:
        assert post_once(receiver.url, ca_bundle=str(authority.bundle)).status_code == 200


def test_tls_connections_are_reused(authority: Authority) -> None:
    with (
        ScriptedReceiver(tls=authority.issue("127.0.0.1")) as receiver,
        sending(ca_bundle=str(authority.bundle)) as sender,
    ):
        answers = [sender.send(outgoing(receiver.url)) for _ in range(4)]
    assert {answer.status_code for answer in answers} == {200}
    assert receiver.connections == 1


@pytest.mark.parametrize(
    ("names", "faults", "words"),
    [
        ([NAME], {"expired": True}, "certificate has expired"),
        ([NAME], {"self_signed": True}, "self-signed certificate"),
        (["other.example"], {}, "Hostname mismatch"),
        (["127.0.0.1"], {}, "Hostname mismatch"),
    ],
    ids=["expired", "self-signed", "wrong name", "address instead of name"],
)
def test_a_certificate_that_is_not_valid_is_a_tls_failure(
    names: list[str], faults: dict[str, bool], words: str, authority: Authority
) -> None:
    with ScriptedReceiver(tls=authority.issue(*names, **faults)) as receiver:
        answer = post_once(f"https://{NAME}:{receiver.port}/", ca_bundle=str(authority.bundle))
    assert (answer.error_kind, answer.phase) == ("tls", "tls")
    assert words in answer.error
    assert receiver.requests == []


def test_what_was_refused_once_is_refused_again_and_what_was_accepted_helps_nobody_else(
    authority: Authority,
) -> None:
    """Nothing that is kept, connection or session, lets an attempt past the verification."""
    good, bad = authority.issue(NAME), authority.issue(NAME, self_signed=True)
    with (
        ScriptedReceiver(tls=good) as sound,
        ScriptedReceiver(tls=bad) as rotten,
        sending(ca_bundle=str(authority.bundle)) as sender,
    ):
        urls = [f"https://{NAME}:{receiver.port}/" for receiver in (rotten, sound, rotten, sound)]
        kinds = [sender.send(outgoing(url)).error_kind for url in urls * 2]
        other_name = sender.send(outgoing(f"https://www.receiver.example:{sound.port}/"))
    assert kinds == ["tls", None] * 4
    assert rotten.requests == []
    assert other_name.error_kind == "tls"


def test_an_unknown_authority_is_a_tls_failure(authority: Authority) -> None:
    with ScriptedReceiver(tls=authority.issue(NAME)) as receiver:
        answer = post_once(f"https://{NAME}:{receiver.port}/")
    assert (answer.error_kind, receiver.requests) == ("tls", [])


@pytest.mark.parametrize(
    "variable", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR"]
)
def test_the_environment_adds_no_authority(
    variable: str, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle = authority.bundle
    monkeypatch.setenv(variable, str(bundle.parent if variable.endswith("DIR") else bundle))
    with ScriptedReceiver(tls=authority.issue(NAME)) as receiver:
        answer = post_once(f"https://{NAME}:{receiver.port}/")
    assert answer.error_kind == "tls"


@pytest.mark.parametrize("variable", ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"])
def test_the_environment_takes_no_authority_away(
    variable: str, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "/nonexistent/bundle.pem")
    with ScriptedReceiver(tls=authority.issue(NAME)) as receiver:
        answer = post_once(f"https://{NAME}:{receiver.port}/", ca_bundle=str(authority.bundle))
    assert answer.status_code == 200


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "ALL_PROXY"])
def test_a_proxy_of_the_environment_sees_no_tls_either(
    name: str, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        ScriptedReceiver() as proxy,
        ScriptedReceiver(tls=authority.issue("127.0.0.1")) as receiver,
    ):
        for variable in (name, name.lower()):
            monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy.port}")
        answer = post_once(receiver.url, ca_bundle=str(authority.bundle))
    assert (answer.status_code, proxy.connections) == (200, 0)


def test_a_bundle_that_is_missing_stops_the_start() -> None:
    with pytest.raises(OSError, match="nonexistent"):
        Sender(SenderConfig(ca_bundle="/nonexistent/bundle.pem"))


def test_a_plain_port_is_told_as_such() -> None:
    with ScriptedReceiver(at_connect=respond(400)) as receiver:
        answer = post_once(f"https://127.0.0.1:{receiver.port}/")
    assert (answer.error_kind, answer.phase) == ("tls", "tls")
    assert "Check that this port speaks TLS" in answer.error


@pytest.mark.parametrize("end", [close_without_answer, reset])
def test_a_close_during_the_handshake_is_a_tls_failure(end: Behaviour) -> None:
    def end_after_hello(visit: Visit) -> None:
        visit.sock.recv(65536)
        end(visit)

    with ScriptedReceiver(at_connect=end_after_hello) as receiver:
        answer = post_once(f"https://127.0.0.1:{receiver.port}/")
    assert (answer.error_kind, answer.phase) == ("tls", "tls")
    assert "processed" not in answer.error


def test_an_answer_that_comes_before_the_whole_request_counts(authority: Authority) -> None:
    """A receiver that finds the body too large says so and closes, while it is still being sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.issue("127.0.0.1"))

    def refuse_early(visit: Visit) -> None:
        visit.sock = context.wrap_socket(visit.sock, server_side=True)
        visit.sock.recv(1000)
        respond(413)(visit)
        visit.close()

    with (
        ScriptedReceiver(at_connect=refuse_early) as receiver,
        sending(ca_bundle=str(authority.bundle)) as sender,
    ):
        url = f"https://127.0.0.1:{receiver.port}/"
        answers = [sender.send(outgoing(url, b"x" * 2_000_000)) for _ in range(10)]
    assert {(answer.status_code, answer.error_kind) for answer in answers} == {(413, None)}


def test_a_close_after_the_request_is_no_tls_failure(authority: Authority) -> None:
    with ScriptedReceiver(close_without_answer, tls=authority.issue("127.0.0.1")) as receiver:
        answer = post_once(receiver.url, ca_bundle=str(authority.bundle))
    assert (answer.error_kind, answer.phase) == ("connection_reset", "headers")
    assert "It may have processed the request" in answer.error
