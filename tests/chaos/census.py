"""Which process of the pool is what, told from /proc alone.

django-q2 forks all of a pool's processes from one program, so their command lines are the same. The
sentinel starts them in a fixed order (workers, monitor, pusher), which says what each is when a pool is
new; later ones replace the dead in that order too. So the census follows the pool from its start.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Kind(StrEnum):
    """What a process of the cluster does."""

    WATCH = "watch"
    MAIN = "main"
    SENTINEL = "sentinel"
    WORKER = "worker"
    MONITOR = "monitor"
    PUSHER = "pusher"


@dataclass
class Census:
    """The pool below ``manage.py cluster``, as last seen."""

    workers: int
    _sentinel: int = 0
    _kinds: dict[int, Kind] = field(default_factory=dict)

    def look(self, watch: int) -> dict[Kind, list[int]]:
        """The live processes of each kind; those the pool lacks at the moment are missing."""
        found: dict[Kind, list[int]] = {kind: [] for kind in Kind}
        if not is_alive(watch):
            return found
        found[Kind.WATCH] = [watch]
        found[Kind.MAIN] = children(watch)
        found[Kind.SENTINEL] = [pid for main in found[Kind.MAIN] for pid in children(main)]
        if len(found[Kind.SENTINEL]) == 1:
            for pid, kind in self._below(found[Kind.SENTINEL][0]).items():
                found[kind].append(pid)
        return found

    def is_whole(self, watch: int) -> bool:
        """Whether every process that should live does."""
        wanted = dict.fromkeys(Kind, 1) | {Kind.WORKER: self.workers}
        return {kind: len(pids) for kind, pids in self.look(watch).items()} == wanted

    def _below(self, sentinel: int) -> dict[int, Kind]:
        living = children(sentinel)
        if sentinel != self._sentinel:
            self._sentinel, self._kinds = sentinel, {}
        if not self._kinds:
            self._kinds = self._first(living)
        else:
            self._replace(living)
        return {pid: kind for pid, kind in self._kinds.items() if pid in living}

    def _first(self, living: list[int]) -> dict[int, Kind]:
        """A new pool's processes in the order of their start, once all are there."""
        order = [Kind.WORKER] * self.workers + [Kind.MONITOR, Kind.PUSHER]
        return dict(zip(living, order, strict=True)) if len(living) == len(order) else {}

    def _replace(self, living: list[int]) -> None:
        order = [Kind.WORKER, Kind.MONITOR, Kind.PUSHER]
        gone = sorted(
            (pid for pid in self._kinds if pid not in living),
            key=lambda pid: order.index(self._kinds[pid]),
        )
        new = [pid for pid in living if pid not in self._kinds]
        for dead, successor in zip(gone, new, strict=False):
            self._kinds[successor] = self._kinds.pop(dead)


def children(pid: int) -> list[int]:
    """The live children of a process, the oldest first."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, task.read_text().split())
    return sorted((p for p in found if is_alive(p)), key=lambda p: (started(p), p))


def is_alive(pid: int) -> bool:
    """Whether it runs or is stopped; a zombie is dead."""
    fields = _stat(pid)
    return bool(fields) and fields[0] not in "ZX"


def started(pid: int) -> int:
    """When it was started, in ticks of the system's clock; 0 if it is gone."""
    fields = _stat(pid)
    return int(fields[19]) if fields else 0


def waits_on_the_queue(pid: int) -> bool:
    """Whether it sits in the read of a pipe: of the idle workers, the one that holds the lock does."""
    with contextlib.suppress(OSError):
        return "pipe" in Path(f"/proc/{pid}/wchan").read_text()
    return False


def marked(marker: str) -> list[int]:
    """Live processes that have this text in their environment."""
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        pid = int(environ.parent.name)
        with contextlib.suppress(OSError):
            if marker.encode() in environ.read_bytes() and is_alive(pid):
                found.append(pid)
    return found


def _stat(pid: int) -> list[str]:
    """Fields of /proc/pid/stat from the third, the state, on: the second may hold anything."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return []
