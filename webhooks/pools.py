"""Who delivers: the pools of workers, known by their heartbeats."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from organizations import prepared

# A heartbeat comes every second; after fifteen without one a pool counts as frozen and is restarted.
SILENT_AFTER: Final = timedelta(seconds=15)
# A host that was switched off for good is not missed for longer.
MISSED_FOR: Final = timedelta(hours=1)
# Each start of a pool has a row of its own, so most rows are of pools that are long gone.
NEWEST = """
SELECT host, started_at, beat_at FROM webhooks_heartbeat ORDER BY beat_at DESC LIMIT 20
"""


@dataclass(frozen=True)
class Pool:
    """The workers of one host. ``last_beat_at`` is None while they are alive: it would be a second ago."""

    host: str
    started_at: datetime
    last_beat_at: datetime | None = None

    @property
    def alive(self) -> bool:
        return self.last_beat_at is None


def pools(now: datetime) -> list[Pool]:
    """Every pool that is alive, then the hosts that fell silent within the last hour; if there is none of
    either, the last that there was.
    """
    found: list[Pool] = []
    for host, started_at, beat_at in prepared.execute(NEWEST):
        silence = now - beat_at
        if silence <= SILENT_AFTER:
            found.append(Pool(host, started_at))
        # One that has a successor on its host is not missed.
        elif not found or (silence <= MISSED_FOR and host not in {pool.host for pool in found}):
            found.append(Pool(host, started_at, beat_at))
    return found
