"""Two signs of life, for whoever watches a pool of workers from outside.

*The heartbeat* is a row in the database. The clock hands out ``probe`` each second; a worker runs it; its
result goes to django-q2's monitor, and there ``beat`` writes the row. So it shows that pusher, both
queues, a worker, the monitor and the database work together. A process that was killed while it held a
queue's lock leaves the others alive and deaf: a monitor's successor would never hear of a result again,
ordinary tasks would be repeated for ever, and the workers' memory would fill with what nobody takes.

*The pulse* is a byte in a pipe, from the sentinel, each time it has looked after its processes. A worker
that was killed at the wrong moment holds up the sentinel, and then nobody replaces the dead.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
from typing import Any

from django.db import Error, connection
from django_q.signals import post_execute

logger = logging.getLogger(__name__)

# Names the pool's row; set by the watch, like the number of the pipe's descriptor.
CLUSTER_VARIABLE = "CLUSTER_ID"
PULSE_VARIABLE = "CLUSTER_PULSE"

PROBE = "webhooks.engine.heartbeat.probe"

BEAT = """
INSERT INTO webhooks_heartbeat (cluster, host, started_at, beat_at)
VALUES (%(cluster)s, %(host)s, clock_timestamp(), clock_timestamp())
ON CONFLICT (cluster) DO UPDATE SET beat_at = clock_timestamp()
"""


def probe() -> None:
    """The worker's part: it runs tasks and reaches the database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def beat() -> None:
    """Write that all parts of this pool work, now."""
    cluster = os.environ.get(CLUSTER_VARIABLE, "none")
    with connection.cursor() as cursor:
        cursor.execute(BEAT, {"cluster": cluster, "host": socket.gethostname()})


def on_result(task: dict[str, Any], **_: Any) -> None:
    """The monitor's part. It must outlive a database that is away: an error would end the monitor."""
    if task["func"] != PROBE or not task["success"]:
        return
    try:
        beat()
    except Error:
        logger.warning("the database is away; no heartbeat", exc_info=True)
        connection.close()


post_execute.connect(on_result)


def pulse() -> None:
    """The sentinel's part. Without its parent it ends the pool: nobody would stop it any more."""
    if (descriptor := os.environ.get(PULSE_VARIABLE)) is None:
        return
    if os.getppid() != os.getpgrp():
        os.killpg(0, signal.SIGKILL)
    # Full: the watch is busy. Broken: it is gone, and the pool is being stopped.
    with contextlib.suppress(OSError):
        os.write(int(descriptor), b".")
