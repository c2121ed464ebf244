"""``manage.py pool``: django-q2's cluster, bound to the life of the process that started it.

``manage.py cluster`` starts it, as the leader of a session, and holds the other end of its standard
input. When that closes, whoever watched is dead, however it died: then the pool stops in good order, and
what does not stop in time (it may be frozen) is killed. Otherwise it would live on beside its successor.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Any

from django.conf import settings
from django_q.management.commands import qcluster

# An attempt on the wire ends within its deadline; then it is recorded.
STOP_GRACE_S = settings.ATTEMPT_DEADLINE_S + 1.5


class Command(qcluster.Command):  # type: ignore[misc]
    help = "Run the delivery workers for as long as standard input is open. Started by `cluster`."

    def handle(self, *args: Any, **options: Any) -> None:
        super().handle(*args, **options)
        # After the fork of the sentinel: a process with threads forks badly.
        threading.Thread(target=_end_with_the_watch, name="lifeline", daemon=True).start()


def _end_with_the_watch() -> None:
    """Wait for the end of standard input, to which nothing is ever written."""
    # Not sys.stdin: its lock, held here at the end of the program, would abort it.
    os.read(sys.stdin.fileno(), 1)
    # The main thread waits for the sentinel; only a signal of its own interrupts that.
    main = threading.main_thread().ident
    assert main is not None
    signal.pthread_kill(main, signal.SIGTERM)
    time.sleep(STOP_GRACE_S)
    os.killpg(0, signal.SIGKILL)
