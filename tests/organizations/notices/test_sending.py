"""Mails on real sockets: what arrives, and what a mail server can do to one."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from email.message import EmailMessage

import pytest
from django.core import mail as django_mail
from pytest_django import Settings

from organizations.actors import Actor
from organizations.models import Notice, User
from organizations.notices import transport
from tests.factories import Scene, answer, claim, record
from tests.mail_sink import (
    MailSink,
    dialogue,
    drip,
    misbehaving,
    refuse_to_talk,
    say_nothing,
    use,
)
from tests.organizations.notices.posting import (
    disabling,
    fact_for,
    gathered,
    left_behind,
    post,
    tell,
)

pytestmark = pytest.mark.django_db

NASTY = "<a href=https://evil.example>Confirm</a>\u202e\r\nBcc: all@evil.example\u2028 🛰️ \ud800"


@pytest.fixture
def sink(settings: Settings) -> Iterator[MailSink]:
    with MailSink() as running:
        use(settings, running.port)
        yield running


def text_of(message: EmailMessage) -> str:
    return _part(message, "plain")


def html_of(message: EmailMessage) -> str:
    return _part(message, "html")


def _part(message: EmailMessage, kind: str) -> str:
    body = message.get_body(preferencelist=(kind,))
    assert body
    content: str = body.get_content()
    return content


# --- what arrives -------------------------------------------------------------------------------


def test_an_owner_reads_which_endpoint_why_and_what_to_do(scene: Scene, sink: MailSink) -> None:
    error = {"at": "2026-01-31T09:29:00.100000Z", "words": "It answered 503.", "said": "overloaded"}
    [notice] = tell(disabling(scene.organization.pk, ended=7, errors=[error]))
    assert post() == 1
    [message] = sink.mails
    assert sink.recipients == [scene.owner.user.email]
    assert message["To"] == scene.owner.user.email
    assert message["Subject"] == "Endpoint disabled: Gateway (Test organization)"
    assert message["Auto-Submitted"] == "auto-generated"
    for body in (text_of(message), html_of(message)):
        assert "Disabled at 2026-01-31 09:30:00 UTC. It failed 20 times in a row." in body
        assert "7 waiting deliveries ended as failed." in body
        assert "2026-01-31 09:29:00 UTC: It answered 503. It said: “overloaded”" in body
        assert "test it with a ping" in body
        assert f"http://127.0.0.1:8000/endpoints/{notice.subject_id}/" in body
    notice.refresh_from_db()
    assert (notice.state, notice.channel) == ("sent", "mail")
    assert notice.address == scene.owner.user.email


def test_an_operator_reads_what_is_known_of_his_command(operator: Actor, sink: MailSink) -> None:
    [notice] = tell(fact_for(operator, name="set_speed", token="t-77"))
    post()
    [message] = sink.mails
    assert message["Subject"] == "Command timed out: set_speed (Test organization)"
    for body in (text_of(message), html_of(message)):
        assert "Find out what the vehicle did before you reissue" in body
        assert "t-77" in body
        assert f"http://127.0.0.1:8000/commands/{notice.subject_id}/" in body
        assert "what to switch off" in body


def test_a_hundred_commands_make_one_digest_that_names_ten(operator: Actor, sink: MailSink) -> None:
    told = tell(*(fact_for(operator, token=f"token-{n}.") for n in range(100)))
    assert post() == 1
    [message] = sink.mails
    assert message["Subject"] == "100 commands timed out (Test organization)"
    for body in (text_of(message), html_of(message)):
        assert sum(f"token-{n}." in body for n in range(100)) == 10
        assert "And 90 more." in body
        assert "http://127.0.0.1:8000/commands/?state=timed_out" in body
    assert Notice.objects.filter(state="sent").count() == len(told)
    assert Notice.objects.values("mail_id").distinct().count() == 1


def test_nasty_names_are_text_in_each_part_and_no_header(scene: Scene, sink: MailSink) -> None:
    scene.organization.name = "Org\r\nX-Evil: 1\u202e"
    scene.organization.save()
    command = scene.issued(name=NASTY.replace("\ud800", ""))
    tell(fact_for(scene.operator, name=command.name))
    said = "See https://evil.example/login or www.evil.example"
    error = {"at": "2026-01-31T09:29:00Z", "words": "It answered 500.", "said": said}
    tell(disabling(scene.organization.pk, name="🛰️ <b>Gateway</b>", errors=[error]))
    post()
    assert sorted(sink.recipients) == sorted([scene.operator.user.email, scene.owner.user.email])
    for message in sink.mails:
        assert message["Bcc"] is None
        assert message["X-Evil"] is None
        assert "\u202e" not in str(message["Subject"]) + text_of(message) + html_of(message)
        assert "<b>" not in html_of(message)
        assert "<a href=https" not in html_of(message)
        assert "https://evil.example/login" not in text_of(message) + html_of(message)
    [to_owner] = [m for m in sink.mails if m["To"] == scene.owner.user.email]
    assert "<b>Gateway</b>" in text_of(to_owner)
    assert "🛰️" in str(to_owner["Subject"])


def test_received_bytes_that_are_no_text_do_not_hold_up_the_mail(
    scene: Scene, sink: MailSink
) -> None:
    """Latin-1, UTF-16, half surrogates: as the recorder keeps them, and as the mail quotes them."""
    endpoint = scene.another_endpoint("event")
    for _ in range(5):
        delivery = scene.send(endpoint)
        for excerpt in (
            "é".encode("latin-1"),
            "wide".encode("utf-16"),
            b"\xed\xa0\x80\x00\x1b[31m",
        ):
            record(answer(claim(delivery), 500, response_excerpt=excerpt))
    gathered()
    post()
    [message] = sink.mails
    assert "It said: “" in text_of(message)
    assert "\x1b" not in text_of(message)


def test_who_left_meanwhile_is_sent_nothing(scene: Scene, sink: MailSink) -> None:
    [notice] = tell(fact_for(scene.operator))
    User.objects.filter(pk=scene.operator.user.pk).update(is_active=False)
    post()
    notice.refresh_from_db()
    assert (notice.state, sink.mails) == ("gave_up", [])
    assert notice.error == "No longer a member who may sign in."


def test_a_mail_goes_to_the_address_of_today(scene: Scene, sink: MailSink) -> None:
    tell(fact_for(scene.operator))
    User.objects.filter(pk=scene.operator.user.pk).update(email="new@example.com")
    post()
    assert sink.recipients == ["new@example.com"]


# --- what goes wrong ----------------------------------------------------------------------------


def test_a_refused_address_is_given_up_with_the_reason(operator: Actor, sink: MailSink) -> None:
    [notice] = tell(fact_for(operator))
    sink.refuse_recipient = "550 5.1.1 no such user here"
    post()
    notice.refresh_from_db()
    assert notice.state == "gave_up"
    assert notice.error == "The mail server refused the address: 550 5.1.1 no such user here"


@pytest.mark.parametrize(
    ("recipient", "content", "words"),
    [
        ("450 4.2.0 greylisted", None, "refused the address: 450 4.2.0 greylisted"),
        (None, "451 4.3.0 disk full", "answered 451: 4.3.0 disk full"),
        (None, "554 5.7.1 looks like spam", "answered 554: 5.7.1 looks like spam"),
    ],
)
def test_a_refusal_that_may_pass_is_tried_again(
    operator: Actor, sink: MailSink, recipient: str | None, content: str | None, words: str
) -> None:
    [notice] = tell(fact_for(operator))
    sink.refuse_recipient, sink.refuse_content = recipient, content
    post()
    notice.refresh_from_db()
    assert words in notice.error
    assert (notice.state, notice.tries) == ("waiting", 1)
    assert post() == 0
    sink.refuse_recipient = sink.refuse_content = None
    gathered()
    assert post() == 1
    assert len(sink.mails) == 1
    notice.refresh_from_db()
    assert (notice.state, notice.tries, notice.error) == ("sent", 2, "")


@pytest.mark.parametrize(
    ("serve", "words"),
    [
        (refuse_to_talk, "The mail server ended the connection."),
        (dialogue, "The mail server ended the connection."),
        (say_nothing, "The mail server did not answer in time."),
        (drip, "The mail server did not take the mail within 1 s."),
    ],
)
def test_a_server_that_hangs_or_drops_leaves_the_notice_waiting(
    operator: Actor,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    serve: Callable[[socket.socket], None],
    words: str,
) -> None:
    settings.EMAIL_TIMEOUT = 0.5
    monkeypatch.setattr(transport, "MAIL_DEADLINE_S", 1.0)
    [notice] = tell(fact_for(operator))
    began = time.monotonic()
    with misbehaving(serve) as port:
        use(settings, port)
        post()
    assert time.monotonic() - began < 5
    notice.refresh_from_db()
    assert (notice.state, notice.tries, notice.error) == ("waiting", 1, words)


def test_a_server_that_is_not_there_is_tried_again(operator: Actor, settings: Settings) -> None:
    [notice] = tell(fact_for(operator))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = taken.getsockname()[1]
    use(settings, free)
    post()
    notice.refresh_from_db()
    assert notice.error == "The mail server refused the connection."


def test_a_bad_goodbye_does_not_send_the_mail_again(operator: Actor, sink: MailSink) -> None:
    """The server took it and went away before QUIT."""
    [notice] = tell(fact_for(operator))
    sink.hang_up_after_content = True
    post()
    notice.refresh_from_db()
    assert (notice.state, len(sink.mails)) == ("sent", 1)


def test_a_mail_that_is_sent_once_more_has_the_same_name(operator: Actor, sink: MailSink) -> None:
    """The postman died between the server's answer and our record: a mailbox can drop the double."""
    tell(fact_for(operator))

    def die() -> None:
        raise SystemExit

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("organizations.notices.outbox.record_sent", lambda *_: die())
        with pytest.raises(SystemExit):
            post()
    left_behind()
    assert post() == 1
    first, second = sink.mails
    assert first["Message-ID"] == second["Message-ID"]
    assert Notice.objects.get().state == "sent"


def test_a_fault_of_ours_is_a_failed_try(
    operator: Actor, sink: MailSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    [notice] = tell(fact_for(operator))
    monkeypatch.setattr("organizations.notices.postman.message_of", lambda mail: 1 / 0)
    post()
    notice.refresh_from_db()
    assert notice.error == "The console could not write this mail (ZeroDivisionError)."
    assert (notice.state, sink.mails) == ("waiting", [])


# --- without a mail server ----------------------------------------------------------------------


def test_without_a_mail_server_a_notice_is_shown_on_its_page_and_logged_in_a_line(
    operator: Actor, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.EMAIL_BACKEND = "organizations.notices.transport.PageBackend"
    [notice] = tell(fact_for(operator, name="set_speed", token="secret-token"))
    with caplog.at_level("INFO", "organizations"):
        post()
    notice.refresh_from_db()
    assert (notice.state, notice.channel) == ("sent", "page")
    lines = [line for line in caplog.messages if operator.user.email in line]
    assert len(lines) == 1
    assert "Command timed out: set_speed" in lines[0]
    assert "secret-token" not in caplog.text


def test_pages_and_mails_of_the_login_use_the_same_server(sink: MailSink) -> None:
    django_mail.send_mail("Hello", "Text", None, ["someone@example.com"])
    assert [message["Subject"] for message in sink.mails] == ["Hello"]
