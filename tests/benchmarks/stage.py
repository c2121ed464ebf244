"""Everything the benchmarks run on, started for them and gone after them.

A ``Stage`` has a throw-away PostgreSQL, the receiver, and one database with an organization in it, which
is the template of all others. An ``Arena`` is a copy of it with pools of workers at work. Several arenas
live side by side (an idle pool costs next to nothing), so that what is compared can take turns.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import LiteralString
from urllib.parse import urlsplit, urlunsplit

import psycopg

from config.database import EmbeddedPostgres
from config.processes import read_procfile
from tests.benchmarks import machine
from tests.benchmarks.figures import BenchmarkFailed
from tests.benchmarks.reception import Reception
from tests.benchmarks.scene import Scene
from tests.plain_sql import Connection

PROJECT = Path(__file__).resolve().parents[2]
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 15.0
LOOK_S = 0.02

_numbers = itertools.count(1)


def wait_until(condition: Callable[[], bool], timeout_s: float, what: str) -> None:
    """Look again and again. Raises BenchmarkFailed, which says ``what`` did not happen in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise BenchmarkFailed(f"After {timeout_s:.0f} s still not: {what}.")
        time.sleep(LOOK_S)


class Process:
    """A process of the console, in a session of its own: Ctrl-C is for the benchmarks alone."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        self._log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                env=environment,
                cwd=PROJECT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pids(self) -> list[int]:
        return [self._process.pid, *machine.descendants(self._process.pid)]

    def check(self) -> None:
        if self._process.poll() is not None:
            words = self._log.read_text(errors="replace")[-2000:]
            raise BenchmarkFailed(f"A process of the console ended:\n{words}")

    def terminate(self) -> None:
        """Ask it to end, and do not wait: others can be asked meanwhile. Asking twice does no harm."""
        self._process.terminate()

    def stop(self) -> None:
        """Ask it to end; kill all of it when it does not."""
        left = self.pids
        self.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.wait()


@dataclass(frozen=True)
class Wanted:
    """How many pools an arena has, and the settings that they are started with."""

    pools: int = 1
    settings: Mapping[str, object] = field(default_factory=dict)


@dataclass
class Arena:
    """A database with the pools that work on it."""

    url: str
    scene: Scene
    receiver: Reception
    connection: Connection
    clusters: list[Process] = field(default_factory=list)

    @property
    def cluster_pids(self) -> list[int]:
        return [pid for cluster in self.clusters for pid in cluster.pids]

    def check(self) -> None:
        for cluster in self.clusters:
            cluster.check()

    def is_at_work(self) -> bool:
        """Whether each pool has shown a sign of life."""
        self.check()
        return self.value("SELECT count(*) FROM webhooks_heartbeat") >= len(self.clusters)

    def value(self, sql: LiteralString, *parameters: object) -> float:
        """The one number that a query returns."""
        row = self.connection.execute(sql, parameters or None).fetchone()
        assert row
        return float(row[0])


class Stage:
    """See the module. Enter it once."""

    def __init__(self, folder: Path, database: EmbeddedPostgres, receiver: Reception) -> None:
        self.folder = folder
        self.database = database
        self.receiver = receiver
        self.scene: Scene

    @classmethod
    @contextlib.contextmanager
    def set(cls) -> Iterator[Stage]:
        """Start it, and leave nothing behind, however the block ends."""
        with contextlib.ExitStack() as at_the_end:
            folder = Path(tempfile.mkdtemp(prefix="command-console-benchmarks-"))
            folder.chmod(0o755)  # run as root, the server's account must pass
            at_the_end.callback(shutil.rmtree, folder, ignore_errors=True)
            database = at_the_end.enter_context(EmbeddedPostgres(folder, durable=True))
            receiver = at_the_end.enter_context(Reception.open())
            stage = cls(folder, database, receiver)
            os.environ.update(stage.environment(database.url))
            stage.scene = Scene.prepare(receiver.url)
            yield stage

    @property
    def postgres_pids(self) -> list[int]:
        ours = machine.descendants(os.getpid())
        return [pid for pid in ours if machine.name_of(pid) == "postgres"]

    def environment(self, url: str, **settings: object) -> dict[str, str]:
        """What a process of the console is started with."""
        return {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "DATABASE_URL": url,
            "CONSOLE_DATA_DIR": str(self.folder),
            "ENDPOINT_ALLOW_HTTP": "1",
            "ENDPOINT_ALLOWED_NETWORKS": "127.0.0.0/8",
            "LOG_LEVEL": "WARNING",
            **{name: str(value) for name, value in settings.items()},
        }

    @contextlib.contextmanager
    def arenas(self, wanted: Mapping[str, Wanted]) -> Iterator[dict[str, Arena]]:
        """Fresh copies of the prepared database with pools at work, started and ended together."""
        with contextlib.ExitStack() as at_the_end:
            arenas = {name: self._open(at_the_end, one) for name, one in wanted.items()}
            for arena in arenas.values():
                for cluster in arena.clusters:
                    at_the_end.callback(cluster.terminate)
            # What hangs would hold up the end for as long as an attempt may take.
            at_the_end.callback(self.receiver.release)
            for arena in arenas.values():
                wait_until(arena.is_at_work, START_TIMEOUT_S, "the pools work")
            yield arenas

    def _open(self, at_the_end: contextlib.ExitStack, wanted: Wanted) -> Arena:
        url = self._copy()
        sql = at_the_end.enter_context(psycopg.connect(url, autocommit=True))
        arena = Arena(url, self.scene, self.receiver, sql)
        environment = self.environment(url, **wanted.settings)
        command = [sys.executable, str(PROJECT / "manage.py"), "cluster"]
        for _ in range(wanted.pools):
            log = self.folder / f"cluster-{next(_numbers)}.log"
            cluster = Process(command, environment, log)
            at_the_end.callback(cluster.stop)
            arena.clusters.append(cluster)
        return arena

    @contextlib.contextmanager
    def web(self, arena: Arena, port: int) -> Iterator[Process]:
        """The web server of the Procfile, on this arena's database."""
        line = _procfile_line("web")
        environment = self.environment(arena.url, CONSOLE_PORT=port)
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        command = ["sh", "-c", f"exec {line}"]
        server = Process(command, {**environment, "PATH": programs}, self.folder / "web.log")
        try:
            yield server
        finally:
            server.stop()

    def superuser(self, arena: Arena) -> Connection:
        """A connection that may do without foreign keys' checks; the guards hold for it too."""
        parts = urlsplit(arena.url)
        netloc = parts.netloc.replace(f"{parts.username}@", "postgres@")
        return psycopg.connect(urlunsplit(parts._replace(netloc=netloc)), autocommit=True)

    def _copy(self) -> str:
        name = f"arena_{next(_numbers)}"
        with psycopg.connect(_named(self.database.url, "postgres"), autocommit=True) as sql:
            sql.execute(f'CREATE DATABASE "{name}" TEMPLATE "{self.scene.database}"'.encode())
        return _named(self.database.url, name)


def _named(url: str, database: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{database}"))


def _procfile_line(name: str) -> str:
    return read_procfile(PROJECT / "Procfile")[name]
