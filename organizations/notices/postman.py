"""One a worker process: empties the outbox in a thread of its own, whenever it is woken.

A mail server may hang for as long as it likes: neither the worker's tasks nor its deliveries wait for
it. The thread is the guard too: a process never has two mails under way.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
from collections.abc import Callable
from functools import partial
from multiprocessing import util
from typing import Final

from django.db import InterfaceError, OperationalError, connection

from organizations.notices import outbox
from organizations.notices.mails import message_of
from organizations.notices.outbox import Mail
from organizations.notices.transport import NotSent, handed_over

logger = logging.getLogger(__name__)

# Between tries to record while the database is away.
DATABASE_RETRY_S: Final = 0.5
# A mail under way at the stop gets this long, after the deliveries had theirs. One that takes longer is
# sent again when its lease has run out.
STOP_S: Final = 1.0


class Postman:
    """Sends what is due, one mail after the other, until it is stopped."""

    def __init__(self) -> None:
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name="postman", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def wake(self) -> None:
        """Something may be due. Returns at once, also while a mail is under way."""
        self._woken.set()

    def begin_stop(self) -> None:
        """Take on no further mail."""
        self._stopping.set()
        self._woken.set()

    def stop(self) -> None:
        """Take on no further mail, and give the one under way a moment."""
        self.begin_stop()
        self._thread.join(STOP_S)

    def _work(self) -> None:
        while not self._stopping.is_set():
            self._woken.wait()
            self._woken.clear()
            try:
                self.empty_outbox()
            except Exception:
                logger.exception("emptying the outbox failed; the next wake tries again")
            finally:
                connection.close()

    def empty_outbox(self) -> int:
        """Send every mail that is due; how many were tried."""
        tried = 0
        while not self._stopping.is_set() and (mail := outbox.claim()) is not None:
            self._send(mail)
            tried += 1
        return tried

    def _send(self, mail: Mail) -> None:
        """Send one mail and record what came of it. A fault of ours is one more failed try."""
        with contextlib.ExitStack() as connected:
            failed = partial(outbox.record_failed, mail)
            try:
                if not mail.reachable:
                    raise NotSent("No longer a member who may sign in.", permanent=True)
                channel = connected.enter_context(handed_over(message_of(mail)))
                record = partial(outbox.record_sent, mail, channel)
            except NotSent as failure:
                logger.warning("mail %s was not sent: %s", mail.id, failure.why)
                record = partial(failed, failure.why, final=failure.permanent)
            except Exception as fault:
                logger.exception("mail %s was not sent", mail.id)
                why = f"The console could not write this mail ({type(fault).__name__})."
                record = partial(failed, why, final=False)
            self._record(record)

    def _record(self, record: Callable[[], None]) -> None:
        """Record, however long the database is away: who forgot that a mail was sent sends it again."""
        while True:
            try:
                record()
                return
            except (OperationalError, InterfaceError):
                logger.warning("the database is away; the outcome of a mail waits", exc_info=True)
                connection.close()
                if self._stopping.wait(DATABASE_RETRY_S):
                    raise


@functools.cache
def postman() -> Postman:
    """This process's postman, started on first use, that is after the worker was forked."""
    running = Postman()
    running.start()
    # A worker is a multiprocessing child: these have finalizers instead of atexit. The pump drains
    # between the two (10), so a mail under way has as long as the deliveries.
    util.Finalize(running, running.begin_stop, exitpriority=20)
    util.Finalize(running, running.stop, exitpriority=5)
    return running
