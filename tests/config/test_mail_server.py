"""``EMAIL_URL`` and ``DEFAULT_FROM_EMAIL``: understood, or refused with a sentence."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import settings
from config.mail_server import MailServer, parse


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("smtp://localhost", MailServer("localhost", 25, "", "", "smtp")),
        ("smtp://127.0.0.1:1025", MailServer("127.0.0.1", 1025, "", "", "smtp")),
        ("smtp://[::1]:1025/", MailServer("::1", 1025, "", "", "smtp")),
        (
            "smtp+tls://me%40example.com:a+b%2F%23c@mail.example",
            MailServer("mail.example", 587, "me@example.com", "a+b/#c", "smtp+tls"),
        ),
        ("smtp+ssl://u:p@mail.example", MailServer("mail.example", 465, "u", "p", "smtp+ssl")),
    ],
)
def test_an_address_is_understood(url: str, server: MailServer) -> None:
    assert parse(url) == server


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("mail.example:25", "must begin with"),
        ("smtps://mail.example", "must begin with"),
        ("smtp://", "no more"),
        ("smtp://mail.example:none", "malformed"),
        ("smtp://mail.example:99999", "malformed"),
        ("smtp://user@mail.example", "needs a password"),
        ("smtp://u:hunter2@mail.example/path?x=1", "no more"),
    ],
)
def test_a_wrong_one_is_refused_without_its_password(url: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refusal:
        parse(url)
    assert "hunter2" not in str(refusal.value)


def test_a_password_is_in_no_representation() -> None:
    assert "hunter2" not in repr(parse("smtp://u:hunter2@mail.example"))


def test_a_wrong_variable_stops_the_start_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMAIL_URL", "mail.example")
    with pytest.raises(ImproperlyConfigured, match="EMAIL_URL"):
        settings.mail_server("EMAIL_URL")


@pytest.mark.parametrize("text", ["nobody", "Console <console@>", "a@b.example\nBcc: x@y.example"])
def test_a_sender_that_is_no_address_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("DEFAULT_FROM_EMAIL", text)
    with pytest.raises(ImproperlyConfigured, match="DEFAULT_FROM_EMAIL"):
        settings.mail_address("DEFAULT_FROM_EMAIL", "unused")


def test_a_sender_may_have_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEFAULT_FROM_EMAIL", "Ops <ops@example.com>")
    assert settings.mail_address("DEFAULT_FROM_EMAIL", "unused") == "Ops <ops@example.com>"
