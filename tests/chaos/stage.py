"""Where it all happens: a throw-away PostgreSQL on a disk of its own, and the network to it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from config.database import EmbeddedPostgres
from tests.chaos.loop import LoopThread
from tests.chaos.relay import HOST, Relay

# Room for the cluster, its log and the record of some hours; small enough to be filled in a moment.
DISK_MB = 768
BLOCK = bytes(1 << 20)

# The log of changes may not fill the small disk by itself.
MAX_WAL_MB = 128


@dataclass(frozen=True)
class Disk:
    """The file system with PostgreSQL's data."""

    folder: Path
    why_not_its_own: str

    def fill(self) -> None:
        """Take the last byte that is free."""
        if self.why_not_its_own:
            raise NotImplementedError(self.why_not_its_own)
        descriptor = os.open(self._ballast, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            for size in (len(BLOCK), 4096):
                with contextlib.suppress(OSError):
                    while os.write(descriptor, BLOCK[:size]):
                        pass
        finally:
            os.close(descriptor)

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)

    @property
    def _ballast(self) -> Path:
        return self.folder / "ballast"


@dataclass(frozen=True)
class Stage:
    """The database, its disk and the network to it."""

    folder: Path
    disk: Disk
    database: EmbeddedPostgres

    def crash_database(self) -> None:
        """End PostgreSQL without a word, as a power failure does; it recovers at its next start."""
        os.kill(self._postmaster(), signal.SIGQUIT)
        deadline = time.monotonic() + 30
        while self.database.is_running():
            if time.monotonic() > deadline:
                raise TimeoutError("PostgreSQL survived SIGQUIT")
            time.sleep(0.05)

    def _postmaster(self) -> int:
        pid_file = self.database.files.cluster / "postmaster.pid"
        return int(pid_file.read_text().partition("\n")[0])

    def relay(self, loop: LoopThread) -> Relay:
        return Relay(loop, self.database.files.socket)


def url_through(relay: Relay) -> str:
    """The address of the database through the relay."""
    return f"postgresql://console@{HOST}:{relay.port}/console"


def tune(database: EmbeddedPostgres) -> None:
    """Fit the server to its small disk. Only its superuser may, in person: through its own program."""
    statement = f"ALTER SYSTEM SET max_wal_size = '{MAX_WAL_MB}MB'; SELECT pg_reload_conf()"
    files = database.files
    subprocess.run(
        [str(files.programs() / "psql"), "--no-psqlrc", "-q", "-o", os.devnull]
        + ["-h", str(files.socket.parent), "-U", "postgres", "-d", "postgres"]
        + [argument for one in statement.split("; ") for argument in ("-c", one)],
        check=True,
        **files.account.arguments,
    )


@contextlib.contextmanager
def raised() -> Iterator[Stage]:
    """Make the disk and start PostgreSQL there; in the end nothing is left of either."""
    folder = Path(tempfile.mkdtemp(prefix="command-console-chaos-"))
    folder.chmod(0o755)  # run as root, the server's account must pass
    try:
        # Durable: a crash must not lose what was committed.
        with (
            _disk(folder / "data") as disk,
            EmbeddedPostgres(disk.folder, durable=True) as database,
        ):
            yield Stage(folder, disk, database)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _disk(folder: Path) -> Iterator[Disk]:
    folder.mkdir(mode=0o755)
    why_not = _mount(folder)
    try:
        yield Disk(folder, why_not)
    finally:
        if not why_not:
            subprocess.run(["umount", "--lazy", folder], check=False)


def _mount(folder: Path) -> str:
    """Mount a small file system of memory; why that is not possible, or nothing."""
    if os.geteuid() != 0:
        return "only root may mount a small file system for it"
    options = f"size={DISK_MB}m,mode=0755"
    command = ["mount", "-t", "tmpfs", "-o", options, "command-console-chaos", str(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return "" if done.returncode == 0 else f"mount refused: {done.stderr.strip()}"
