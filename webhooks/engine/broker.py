"""The engine's clock: a django-q2 broker that hands out work the moment it is due.

django-q2's pusher calls ``dequeue`` all the time. Three kinds of task come out of it:

* ``deliver``, when a delivery is due: some worker's pump then claims it;
* ticks, each at its period: the sweeps and the heartbeat;
* ordinary tasks from django-q2's own table (mails, pruning).

Between them it waits for PostgreSQL's NOTIFY, which the commit of a dispatch sends, so a dispatch is
on the wire within milliseconds and an idle console costs nothing. The deliveries themselves are the
truth: a task that is lost is handed out again while anything is due.
"""

from __future__ import annotations

import logging
import os
import time
from typing import Any

import psycopg
from django.conf import settings
from django.db import Error, connection
from django.utils import timezone
from django_q.brokers.orm import ORM
from django_q.signing import SignedPackage

from webhooks.engine import claims, heartbeat
from webhooks.publishing import DUE_CHANNEL

logger = logging.getLogger(__name__)

Package = tuple[int | None, str]

# The longest wait: the pusher looks for its stop signal between two calls.
MAX_WAIT_S = 0.25
# While something stays due (every thread busy, an endpoint at its limit), workers are woken this often.
# A worker whose slots free up looks for itself, so this only serves the others.
OVERDUE_S = 0.05
# Wake-ups closer together than this become one: a thousand dispatches a second need no thousand tasks.
SPACING_S = 0.005
# How often django-q2's own table is looked at: mails and pruning are in no hurry.
ORDINARY_S = 0.5


class ClockBroker(ORM):  # type: ignore[misc]
    """Hands out due deliveries, ticks and ordinary tasks."""

    def __init__(self, list_key: str | None = None) -> None:
        super().__init__(list_key)
        self._clock: Clock | None = None

    def dequeue(self) -> list[Package] | None:
        """The next tasks, or None after a short wait; never raises for a database that is away."""
        try:
            if self._clock is None or self._clock.process != os.getpid():
                self._clock = Clock()
            return self._clock.wait() + self._ordinary()
        except (Error, psycopg.Error):
            logger.warning("the database is away; the clock waits", exc_info=True)
            connection.close()
            self._clock = None
            time.sleep(MAX_WAIT_S)
            return None

    def set_stat(self, key: str, value: str, timeout: int) -> None:
        """django-q2's sentinel would publish its statistics each time it has looked after its processes."""
        heartbeat.pulse()

    def _ordinary(self) -> list[Package]:
        assert self._clock is not None
        if not self._clock.ordinary_due():
            return []
        return [task for task in super().dequeue() or [] if self._is_readable(task)]

    def _is_readable(self, task: Package) -> bool:
        """A task of another release may name what is no more. It is dropped, for reading it would end the
        pusher, again and again.
        """
        number, payload = task
        try:
            SignedPackage.loads(payload)
        except Exception:
            logger.exception("task %s cannot be read: dropped", number)
            self.fail(number)
            return False
        return True


class Clock:
    """When each kind of work is due next. Opened in the process that waits, after the fork."""

    def __init__(self) -> None:
        self.process = os.getpid()
        now = time.monotonic()
        self._ticks = dict.fromkeys(settings.CLOCK_TICKS, now)
        self._deliver_at = self._delivered_at = now
        self._ordinary_at = now
        self._listener = _listen()

    def wait(self) -> list[Package]:
        """Sleep until something is due (at most MAX_WAIT_S), then hand out all that is."""
        until = min(self._deliver_at, self._ordinary_at, *self._ticks.values())
        timeout = min(max(until - time.monotonic(), 0), MAX_WAIT_S)
        notified = any(True for _ in self._listener.notifies(timeout=timeout, stop_after=1))
        now = time.monotonic()
        return self._due_ticks(now) + self._due_delivery(now, notified)

    def ordinary_due(self) -> bool:
        now = time.monotonic()
        if now < self._ordinary_at:
            return False
        self._ordinary_at = now + ORDINARY_S
        return True

    def _due_ticks(self, now: float) -> list[Package]:
        due = [task for task, at in self._ticks.items() if now >= at]
        for task in due:
            self._ticks[task] = now + settings.CLOCK_TICKS[task]
        return [package(task) for task in due]

    def _due_delivery(self, now: float, notified: bool) -> list[Package]:
        if notified:
            self._deliver_at = min(self._deliver_at, self._delivered_at + SPACING_S)
        if now < self._deliver_at:
            return []
        due_in = claims.seconds_until_due()
        if due_in is None or due_in > 0:
            # A retry that is recorded meanwhile is at least a second away, so looking again after
            # MAX_WAIT_S misses none.
            self._deliver_at = now + min(due_in or MAX_WAIT_S, MAX_WAIT_S)
            return []
        self._delivered_at = now
        self._deliver_at = now + OVERDUE_S
        return [package("webhooks.engine.tasks.deliver")]


def package(task: str) -> Package:
    """A task that has no row in django-q2's table: nothing to acknowledge, kept only if it fails."""
    return None, SignedPackage.dumps(
        {
            "id": task[-32:],
            "name": task[-100:],
            "func": task,
            "args": (),
            "kwargs": {},
            "save": False,
            "ack_failure": True,
            "started": timezone.now(),
        }
    )


def _listen() -> psycopg.Connection[Any]:
    """A connection of its own: it hears what commits, and no health check of Django's closes it."""
    parameters = connection.get_connection_params()
    for django_only in ("cursor_factory", "context", "prepare_threshold"):
        parameters.pop(django_only, None)
    listener = psycopg.connect(**parameters, autocommit=True)
    listener.execute(f"LISTEN {DUE_CHANNEL}")
    return listener
