"""Nothing is sent to an address that was not checked in the same attempt."""

from __future__ import annotations

import socket
from ipaddress import ip_network

import pytest

from tests.receivers import ScriptedReceiver, redirect_to
from tests.webhooks.engine.sending import answer_names, outgoing, post_once, sending
from webhooks.engine import exchange, resolver
from webhooks.rules.addresses import AddressPolicy

NAME = "receiver.example"
PUBLIC = AddressPolicy()


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses connected to, in the place of connecting to them."""
    addresses: list[str] = []

    def refuse(address: str, *_: object) -> None:
        addresses.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(exchange, "open_socket", refuse)
    return addresses


@pytest.mark.parametrize(
    "answers",
    [
        ["127.0.0.1"],
        ["8.8.8.8", "10.0.0.1"],
        ["10.0.0.1", "8.8.8.8"],
        ["2606:4700::1", "::ffff:127.0.0.1"],
        ["8.8.8.8"] * 499 + ["169.254.169.254"],
        ["fe80::1%eth0"],
        ["not an address"],
    ],
)
def test_one_address_that_is_not_public_blocks_the_name(
    answers: list[str], opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_names(monkeypatch, {NAME: answers})
    answer = post_once(f"https://{NAME}/?token=secret", addresses=PUBLIC)
    assert (answer.error_kind, answer.phase, answer.address) == ("blocked_address", "name", None)
    assert answer.error.startswith("Nothing was sent: ")
    assert "secret" not in answer.error
    assert opened == []


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "169.254.169.254", "10.1.2.3"])
def test_an_address_in_the_url_is_checked_at_each_attempt(host: str, opened: list[str]) -> None:
    answer = post_once(f"https://{host}/", addresses=PUBLIC)
    assert (answer.error_kind, opened) == ("blocked_address", [])


def test_plain_http_is_blocked_once_settings_no_longer_allow_it(opened: list[str]) -> None:
    answer = post_once("http://8.8.8.8/", addresses=PUBLIC)
    assert (answer.error_kind, opened) == ("blocked_address", [])


def test_the_address_connected_to_is_the_one_that_was_checked(
    opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rebinding = iter([["8.8.8.8"], ["127.0.0.1"]])
    asked = answer_names(monkeypatch, lambda host: next(rebinding))
    monkeypatch.setattr(resolver, "CACHE_SECONDS", 0.0)
    with sending(addresses=PUBLIC) as sender:
        first = sender.send(outgoing(f"https://{NAME}/"))
        assert (len(asked), opened) == (1, ["8.8.8.8"])
        second = sender.send(outgoing(f"https://{NAME}/"))
    assert (first.error_kind, second.error_kind) == ("connection_refused", "blocked_address")
    assert opened == ["8.8.8.8"]


def test_only_a_few_of_many_addresses_are_tried(
    opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer_names(monkeypatch, {NAME: [f"8.8.{i}.8" for i in range(100)]})
    post_once(f"https://{NAME}/", addresses=PUBLIC)
    assert opened == ["8.8.0.8", "8.8.1.8", "8.8.2.8", "8.8.3.8"]


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Where any socket of this process connected to, whoever opened it."""
    addresses: list[object] = []
    connect = socket.socket.connect

    def note(self: socket.socket, address: object) -> None:
        addresses.append(address)
        connect(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", note)
    return addresses


@pytest.mark.parametrize(
    "location",
    [
        "http://169.254.169.254/latest",
        "https://10.0.0.1/",
        "//127.0.0.1/",
        "file:///etc/passwd",
        "/elsewhere",
    ],
)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_wherever_a_redirect_points_nothing_more_is_connected_to(
    location: str, status: int, connected: list[object]
) -> None:
    with ScriptedReceiver(redirect_to(location, status)) as receiver:
        answer = post_once(receiver.url)
    assert (answer.status_code, answer.location) == (status, location)
    assert connected == [("127.0.0.1", receiver.port)]


def test_a_blocked_address_is_connected_to_by_nobody(
    connected: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedReceiver() as receiver:
        answer_names(monkeypatch, {NAME: ["127.0.0.1"]})
        for host in (NAME, "127.0.0.1", "[::ffff:127.0.0.1]"):
            url = f"http://{host}:{receiver.port}/"
            answer = post_once(url, addresses=AddressPolicy(allow_http=True))
            assert answer.error_kind == "blocked_address"
    assert (connected, receiver.connections) == ([], 0)


def test_a_kept_connection_is_not_used_once_its_name_points_inside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The name was public when it was connected to; now one of its addresses is not."""
    allowed = AddressPolicy(True, (ip_network("127.0.0.1/32"),))
    answers = iter([["127.0.0.1"], ["127.0.0.1", "10.0.0.1"]])
    answer_names(monkeypatch, lambda host: next(answers))
    monkeypatch.setattr(resolver, "CACHE_SECONDS", 0.0)
    with ScriptedReceiver() as receiver, sending(addresses=allowed) as sender:
        url = f"http://{NAME}:{receiver.port}/"
        kinds = [sender.send(outgoing(url)).error_kind for _ in range(2)]
    assert kinds == [None, "blocked_address"]
    assert len(receiver.requests) == 1


def test_the_systems_resolver_knows_localhost() -> None:
    with ScriptedReceiver() as receiver:
        url = f"http://localhost:{receiver.port}/"
        blocked = post_once(url, addresses=AddressPolicy(allow_http=True))
    assert blocked.error_kind == "blocked_address"
    assert receiver.connections == 0
