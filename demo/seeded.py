"""The demo organization as `manage.py seed_demo` left it in `demo.json`: keys, endpoints, datasets.

The receiver starts before the file exists and outlives a new seeding, so it asks `DemoFile` for the
organization at each request; the file is read again only when it changed.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from pathlib import Path


class NotSeeded(Exception):
    """There is no readable demo organization."""


@dataclass(frozen=True)
class DemoEndpoint:
    id: str
    url: str
    secret: str = field(repr=False)


@dataclass(frozen=True)
class DemoOrganization:
    api_keys: dict[str, str] = field(repr=False)
    endpoints: dict[str, DemoEndpoint]
    datasets: dict[str, str]


def read_demo_file(path: Path) -> DemoOrganization:
    """Raise `NotSeeded` when the file is absent, not ours to read, or not what a seed writes."""
    try:
        return _organization(path.read_text("utf-8"))
    except OSError as problem:
        raise NotSeeded(f"{path.name} cannot be read: {problem.strerror}") from problem
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        # The problem's own text may quote the file, which holds secrets.
        raise NotSeeded(f"{path.name} is not a complete demo file") from problem


def _organization(text: str) -> DemoOrganization:
    seeded = json.loads(text)
    return DemoOrganization(
        api_keys={role: str(key) for role, key in seeded["apiKeys"].items()},
        endpoints={
            name: DemoEndpoint(str(entry["id"]), str(entry["url"]), str(entry["secret"]))
            for name, entry in seeded["endpoints"].items()
        },
        datasets={name: str(dataset_id) for name, dataset_id in seeded["datasets"].items()},
    )


class DemoFile:
    """`demo.json`, read again when it changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._stamp: tuple[int, int, int] | None = None
        self._organization: DemoOrganization | None = None

    def current(self) -> DemoOrganization | None:
        """The organization last seen whole: a file caught half written does not unseat it."""
        with self._lock:
            stamp = self._stamp_on_disk()
            if stamp is not None and stamp != self._stamp:
                self._reread(stamp)
            return self._organization

    def _stamp_on_disk(self) -> tuple[int, int, int] | None:
        try:
            status = self._path.stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    def _reread(self, stamp: tuple[int, int, int]) -> None:
        try:
            self._organization = read_demo_file(self._path)
        except NotSeeded:
            return
        # The stamp was taken before the read: a write in between is noticed at the next request.
        self._stamp = stamp
