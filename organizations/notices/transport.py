"""How a mail gets to the mail server, within a time that is bounded as a whole."""

from __future__ import annotations

import contextlib
import logging
import os
import smtplib
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.core.mail.backends.smtp import EmailBackend

from organizations.models import Notice
from organizations.rules.texts import one_line

logger = logging.getLogger(__name__)

# EMAIL_TIMEOUT bounds each wait for a byte, not the exchange: a server that drips would hold the thread
# until long after the lease. An exchange takes a second or two.
MAIL_DEADLINE_S: Final = 30
ERROR_LIMIT: Final = 300


class NotSent(Exception):
    """The mail server did not take the mail. ``permanent``: nor will it ever, for this address."""

    def __init__(self, why: str, *, permanent: bool = False) -> None:
        super().__init__(why)
        self.why = one_line(why, ERROR_LIMIT)
        self.permanent = permanent


@contextlib.contextmanager
def handed_over(message: EmailMessage) -> Iterator[str]:
    """Hand the mail over and give the channel it went by; the block records that.

    Only then the mail server is told goodbye: whatever goes wrong there, the mail was taken. Raises
    NotSent before the block.
    """
    backend = get_connection()
    try:
        try:
            # Opened here, or send_messages would say goodbye too, and take its failure for the mail's.
            backend.open()
            backend.send_messages([message])
        except OSError as error:
            if isinstance(backend, SmtpBackend) and backend.cut_off:
                why = f"The mail server did not take the mail within {MAIL_DEADLINE_S:g} s."
                raise NotSent(why) from error
            raise _not_sent(error) from error
        yield Notice.Channel.PAGE if isinstance(backend, PageBackend) else Notice.Channel.MAIL
    finally:
        with contextlib.suppress(OSError):
            backend.close()


def _not_sent(error: OSError) -> NotSent:
    """The meaning of what Django's backend raises; all of smtplib's errors are OSErrors."""
    match error:
        case smtplib.SMTPRecipientsRefused():
            [(code, answer)] = error.recipients.values()
            said = _text(answer)
            why = f"The mail server refused the address: {code} {said}"
            return NotSent(why, permanent=code >= 500)
        case smtplib.SMTPResponseException():
            said = _text(error.smtp_error)
            return NotSent(f"The mail server answered {error.smtp_code}: {said}")
        case smtplib.SMTPServerDisconnected() if "timed out" not in str(error):
            return NotSent("The mail server ended the connection.")
        case TimeoutError() | smtplib.SMTPServerDisconnected():
            return NotSent("The mail server did not answer in time.")
        case ConnectionRefusedError():
            return NotSent("The mail server refused the connection.")
        case socket.gaierror():
            return NotSent("The mail server's name was not resolved.")
        case _:
            return NotSent(f"No way to the mail server: {error.strerror or error}")


def _text(answer: bytes | str) -> str:
    return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer


class Deadline:
    """Cuts connections off when the time is up, whatever they wait for."""

    def __init__(self) -> None:
        self.passed = False
        self._copies: list[socket.socket] = []
        self._timer = threading.Timer(MAIL_DEADLINE_S, self._cut)
        self._timer.daemon = True
        self._timer.start()

    def watch(self, connected: socket.socket) -> None:
        """A copy of the descriptor: TLS takes the socket itself over, and a shutdown reaches both."""
        self._copies.append(socket.socket(fileno=os.dup(connected.fileno())))

    def _cut(self) -> None:
        self.passed = True
        for copy in self._copies:
            with contextlib.suppress(OSError):
                copy.shutdown(socket.SHUT_RDWR)

    def lift(self) -> None:
        self._timer.cancel()
        for copy in self._copies:
            copy.close()


class _Watching(smtplib.SMTP):
    """Shows each connection as soon as it stands, before any handshake."""

    watch: Callable[[socket.socket], None]

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        connected: socket.socket = super()._get_socket(host, port, timeout)  # type: ignore[misc]
        self.watch(connected)
        return connected


class _WatchingTls(smtplib.SMTP_SSL, _Watching):
    """The same over TLS from the start."""


class SmtpBackend(EmailBackend):
    """Django's, with a deadline from its opening to its closing."""

    _deadline: Deadline | None = None

    @property
    def connection_class(self) -> type[smtplib.SMTP]:
        assert self._deadline
        base = _WatchingTls if self.use_ssl else _Watching
        return type(base.__name__, (base,), {"watch": staticmethod(self._deadline.watch)})

    def open(self) -> bool | None:
        if self.connection:
            return False
        self._deadline = Deadline()
        try:
            return super().open()
        except BaseException:
            with contextlib.suppress(OSError):
                self.close()
            raise

    def close(self) -> None:
        try:
            super().close()
        finally:
            if self._deadline:
                self._deadline.lift()

    @property
    def cut_off(self) -> bool:
        """Whether the last mail ran into its deadline."""
        return self._deadline is not None and self._deadline.passed


class PageBackend(BaseEmailBackend):
    """Without a mail server: one line in the log for each mail, nothing of what it says."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        for message in email_messages:
            to, subject = ", ".join(message.recipients()), one_line(str(message.subject), 200)
            logger.info("mail to %s, not sent (EMAIL_URL is not set): %s", to, subject)
        return len(email_messages)
