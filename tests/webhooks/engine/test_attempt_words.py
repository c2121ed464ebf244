"""What people read of a failed attempt, in the console, in logs and in mails, gives nothing away.

The path and the query of a URL often hold a token (chat services make them so), and so may headers.
"""

from __future__ import annotations

import errno
import logging
from pathlib import Path

import pytest
from cryptography.fernet import InvalidToken

from organizations.models import Notice
from organizations.notices import mails, outbox
from tests.factories import Scene, record
from tests.organizations.notices.posting import gathered
from tests.receivers import ScriptedReceiver, Visit, hang, read_request
from tests.webhooks.engine.sending import black_hole, sending
from tests.webhooks.engine.troubles import TROUBLES, claimed, made
from webhooks.engine import attempts, claims, exchange
from webhooks.engine.recorder import Outcome
from webhooks.models import Endpoint
from webhooks.rules import signing

CONFIDENTIAL = "T0P5ECRET"
TAIL = f"/services/{CONFIDENTIAL}/hook?token={CONFIDENTIAL}&x=%20"


def echo(visit: Visit) -> None:
    """Send everything back, the request line first, as something that is no HTTP server may."""
    request = read_request(visit.sock)
    assert request
    visit.send(request.head + request.body)
    visit.close()


def confidential(url: str) -> str:
    """The same place, at a path that nobody else may know."""
    return url.removesuffix("/hook") + TAIL


def gives_nothing_away(outcome: Outcome, log: pytest.LogCaptureFixture) -> bool:
    return CONFIDENTIAL not in repr(outcome) + log.text


@pytest.mark.parametrize("kind", TROUBLES)
def test_no_kind_of_failure_repeats_path_or_query(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.DEBUG),
        TROUBLES[kind](tmp_path) as url,
        sending(deadline_s=0.4) as sender,
    ):
        outcome = made(sender, "command", confidential(url))

    assert outcome.error_kind == kind
    assert outcome.error
    assert gives_nothing_away(outcome, caplog)


def test_a_timeout_in_any_phase_repeats_neither(caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.DEBUG),
        black_hole() as port,
        ScriptedReceiver(at_connect=hang) as silent,
        sending(deadline_s=0.3) as sender,
    ):
        places = [f"http://127.0.0.3:{port}", f"https://127.0.0.1:{silent.port}"]
        outcomes = [made(sender, "command", place + TAIL) for place in places]

    assert [one.phase for one in outcomes] == ["connect", "tls"]
    assert all(gives_nothing_away(one, caplog) for one in outcomes)


def test_a_request_that_comes_back_as_the_answer_is_not_quoted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        caplog.at_level(logging.DEBUG),
        ScriptedReceiver(at_connect=echo) as receiver,
        sending() as sender,
    ):
        outcome = made(sender, "command", confidential(receiver.url))

    assert outcome.error_kind == "protocol"
    assert gives_nothing_away(outcome, caplog)


@pytest.mark.parametrize(
    "url",
    [
        f"https://user:{CONFIDENTIAL}@receiver.example/",
        f"https://{CONFIDENTIAL}@receiver.example:99999/",
        f"https://receiver.example/{CONFIDENTIAL}#",
        f"gopher://receiver.example/{CONFIDENTIAL}",
        f"https://receiver.example/{CONFIDENTIAL}\x00",
        f"https://10.0.0.1/{CONFIDENTIAL}",
    ],
)
def test_an_address_that_may_not_be_used_is_refused_without_being_repeated(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), sending() as sender:
        outcome = made(sender, "command", url)

    assert outcome.error_kind == "blocked_address"
    assert gives_nothing_away(outcome, caplog)


@pytest.mark.parametrize(
    "fault",
    [
        OSError(errno.EMFILE, "Too many open files"),
        ValueError("what nobody thought of"),
        InvalidToken(),
    ],
)
def test_a_fault_of_ours_logs_its_traceback_and_neither_url_nor_secret(
    fault: Exception, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise fault

    monkeypatch.setattr(exchange, "open_socket", fail)
    secret = signing.new_secret()
    with caplog.at_level(logging.DEBUG), sending() as sender:
        attempt = claimed("command", f"http://127.0.0.1:9999{TAIL}", secret)
        outcome = attempts.make(sender, attempt)

    assert outcome.verdict == "lost"
    assert "failed inside the console" in caplog.text
    assert gives_nothing_away(outcome, caplog)
    assert secret.removeprefix("whsec_") not in caplog.text + repr(outcome)


@pytest.mark.django_db
def test_the_mail_about_a_disabled_endpoint_names_its_host_and_no_more(
    scene: Scene, loopback_allowed: None
) -> None:
    with TROUBLES["connection_refused"](Path()) as url, sending(deadline_s=0.4) as sender:
        Endpoint.objects.filter(pk=scene.endpoint.pk).update(url=confidential(url))
        for _ in range(20):
            scene.send()
            record(*(attempts.make(sender, one) for one in claims.claim(1, "worker")))
    assert not Endpoint.objects.get(pk=scene.endpoint.pk).enabled

    gathered()
    mail = outbox.claim()
    assert mail
    message = mails.message_of(mail)

    assert "refused the connection" in message.body
    assert CONFIDENTIAL not in f"{message.subject}{message.body}{message.alternatives}"
    assert CONFIDENTIAL not in repr(list(Notice.objects.values()))
