"""``python -m config.supervisor``: the whole console in one command, and nothing left after it.

Checks what people get wrong (one line each, exit code 1), starts PostgreSQL unless DATABASE_URL names
one, prepares the database, the static files and the demo, runs the processes of the Procfile, and prints
where to look. Ctrl-C, SIGTERM and a closed terminal stop everything in order; a process that ends by
itself does too. A second start finds the data of the first.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import http.client
import io
import json
import os
import re
import select
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Never
from urllib.parse import urlsplit

from config.database import DatabaseUnavailable, EmbeddedPostgres, data_dir_from_environment
from config.premises import make_folders
from config.processes import (
    ProcessEnded,
    Processes,
    adopt_orphans,
    kill_descendants,
    read_procfile,
    say,
)

PROJECT = Path(__file__).resolve().parent.parent
HOST = "127.0.0.1"
STOPPING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# An attempt on the wire finishes within 10 s and is recorded a moment later; PostgreSQL needs some
# tenths after that, and the whole stop promises 12 s.
GRACE_S = 11.5
HEALTHY_WITHIN_S = 60.0
DATABASE_LOOK_S = 1.0
OLDEST_POSTGRESQL = 15

# What `make run` decides for itself unless told otherwise: its receiver is on this machine.
DEFAULTS = {
    "ENDPOINT_ALLOW_HTTP": "1",
    "ENDPOINT_ALLOWED_NETWORKS": "127.0.0.0/8,::1/128",
    "DJANGO_SETTINGS_MODULE": "config.settings",
    # A server that does not answer is told apart from a slow one after this many seconds.
    "PGCONNECT_TIMEOUT": "5",
    "PYTHONUNBUFFERED": "1",
}


class CannotRun(Exception):
    """The console cannot run. The message is one line that says what to do."""


class StopRequested(BaseException):
    """Somebody asked for the end; not an error, so that no ``except Exception`` swallows it."""


@dataclass(frozen=True)
class Plan:
    """What this run uses, checked."""

    data_dir: Path
    port: int
    receiver_port: int

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def demo_file(self) -> Path:
        return self.data_dir / "demo.json"


def main() -> int:
    for number in STOPPING_SIGNALS:
        # nohup asks to outlive the terminal.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _request_stop)
    try:
        plan = make_plan(os.environ)
        _export(plan)
        with _only_one(plan.data_dir):
            run(plan)
    except StopRequested:
        pass
    except (CannotRun, DatabaseUnavailable, ProcessEnded) as error:
        say(str(error))
        return 1
    say("Stopped.")
    return 0


def run(plan: Plan) -> None:
    """Run everything until a signal, a hangup or the end of a process; then stop everything."""
    adopt_orphans()
    with contextlib.ExitStack() as at_the_end:
        at_the_end.callback(kill_descendants)
        embedded = _start_database(plan, at_the_end)
        prepare()
        processes = Processes(read_procfile(PROJECT / "Procfile"), _environment())
        at_the_end.callback(processes.stop, GRACE_S)
        at_the_end.callback(_announce_stop)
        processes.start()
        _wait_until_healthy(plan, processes)
        said = str(embedded.files.cluster) if embedded else "the PostgreSQL that DATABASE_URL names"
        say(banner(plan, json.loads(plan.demo_file.read_text()), said))
        hung_up, keep = _hangup_of_terminal(), _keeper(embedded)
        processes.wait(until=lambda: keep() or hung_up())


def _request_stop(*_: object) -> Never:
    """Once: what follows is cleaning up, and a second Ctrl-C must not interrupt that."""
    for each in STOPPING_SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise StopRequested


def _hangup_of_terminal() -> Callable[[], bool]:
    """A way to ask whether our terminal was closed.

    A shell passes that on as SIGHUP; make, when it is the terminal's only program, does not.
    """
    terminal = select.poll()
    if os.isatty(0) and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        terminal.register(0, 0)
    return lambda: any(event & select.POLLHUP for _, event in terminal.poll(0))


def _announce_stop() -> None:
    for each in STOPPING_SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    say("Stopping: attempts on the wire may take up to 10 s to finish.")


# --- What people get wrong ----------------------------------------------------------------------


def make_plan(environment: Mapping[str, str]) -> Plan:
    """Check ports, DATABASE_URL and the data folder, all before anything is started."""
    port = _port(environment, "CONSOLE_PORT", 8000)
    receiver_port = _port(environment, "RECEIVER_PORT", port + 1)
    _check_free(port, "CONSOLE_PORT")
    _check_free(receiver_port, "RECEIVER_PORT")
    _check_address(environment.get("DATABASE_URL", ""))
    data_dir = data_dir_from_environment().resolve()
    _check_writable(data_dir)
    return Plan(data_dir, port, receiver_port)


def _port(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name) or str(default)
    if not re.fullmatch("[0-9]{1,5}", text) or not 1 <= int(text) <= 65535:
        raise CannotRun(f"{name} must be a port from 1 to 65535, not {text!r}.")
    return int(text)


def _check_free(port: int, name: str) -> None:
    with socket.socket() as probe:
        # As the web server does: a port whose last connections are still closing is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            why = (
                "is in use" if error.errno == errno.EADDRINUSE else f"is refused ({error.strerror})"
            )
            raise CannotRun(
                f"Port {port} {why}: stop what uses it, or choose another with {name}=…"
            ) from None


def _check_address(url: str) -> None:
    """The text of a wrong address is not repeated: it may hold a password."""
    if not url:
        return
    try:
        parts = urlsplit(url)
        _ = parts.port  # a ValueError if it is no number
        sound = parts.scheme in ("postgres", "postgresql", "psql", "pgsql") and parts.path.strip(
            "/"
        )
    except ValueError:
        sound = ""
    if not sound:
        raise CannotRun(
            "DATABASE_URL is malformed: it must look like postgres://USER:PASSWORD@HOST:PORT/NAME; "
            "unset it to use the embedded PostgreSQL."
        )


def _check_writable(data_dir: Path) -> None:
    try:
        make_folders(data_dir)
        tempfile.TemporaryFile(dir=data_dir).close()
    except OSError as error:
        raise CannotRun(
            f"Cannot write to {data_dir} ({error.strerror}): set CONSOLE_DATA_DIR to a folder of yours."
        ) from None


@contextlib.contextmanager
def _only_one(data_dir: Path) -> Iterator[None]:
    """Two consoles on one data folder would stop each other's database."""
    with (data_dir / "console.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise CannotRun(
                f"A console already runs with the data in {data_dir} (process {lock.read().strip()}): "
                "stop it, or set CONSOLE_DATA_DIR to another folder."
            ) from None
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


# --- Preparing ----------------------------------------------------------------------------------


def _export(plan: Plan) -> None:
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    os.environ["CONSOLE_PORT"] = str(plan.port)
    os.environ["RECEIVER_PORT"] = str(plan.receiver_port)
    os.environ["CONSOLE_DATA_DIR"] = str(plan.data_dir)


def _environment() -> dict[str, str]:
    """For the processes: the programs of this installation first."""
    programs = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


def _start_database(plan: Plan, at_the_end: contextlib.ExitStack) -> EmbeddedPostgres | None:
    """Start the embedded PostgreSQL if no other is named."""
    if os.environ.get("DATABASE_URL"):
        return None
    database = EmbeddedPostgres(plan.data_dir)
    at_the_end.callback(database.stop)
    database.start()
    os.environ["DATABASE_URL"] = database.url
    return database


def _keeper(database: EmbeddedPostgres | None) -> Callable[[], bool]:
    """Look after the embedded PostgreSQL, a second apart: start it again when it died. All that waits is in
    its files, and every process connects anew. The answer is always False: no reason to stop.
    """
    next_look = time.monotonic()

    def keep() -> bool:
        nonlocal next_look
        if database and time.monotonic() >= next_look:
            if not database.is_running():
                say("PostgreSQL ended; it is started again.")
                database.start()
                say("PostgreSQL runs again.")
            next_look = time.monotonic() + DATABASE_LOOK_S
        return False

    return keep


def prepare() -> None:
    """Bring database, static files and demo organization up to date; each step may be repeated."""
    import django
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import CommandError, call_command
    from django.db import Error, connection

    try:
        django.setup()
        connection.ensure_connection()
        _check_version(connection)
        call_command("migrate", interactive=False, verbosity=0)
        call_command("createcachetable", verbosity=0)
        if static_files_are_stale():
            call_command("collectstatic", interactive=False, verbosity=0)
        call_command("seed_demo", stdout=io.StringIO())
        connection.close()
    except ImproperlyConfigured as error:
        raise CannotRun(_one_line(error)) from None
    except CommandError as error:
        raise CannotRun(f"Preparing the console failed: {_one_line(error)}") from None
    except Error as error:
        raise CannotRun(
            f"The database cannot be used: {_one_line(error)}; check DATABASE_URL and that its server "
            "runs, or unset it to use the embedded PostgreSQL."
        ) from None


def _check_version(connection: Any) -> None:
    version = connection.pg_version // 10_000
    if version < OLDEST_POSTGRESQL:
        raise CannotRun(
            f"DATABASE_URL names a PostgreSQL {version}: {OLDEST_POSTGRESQL} or newer is needed."
        )


def static_files_are_stale() -> bool:
    """Whether a source is newer than the manifest: collecting hashes and compresses for seconds."""
    from django.conf import settings
    from django.contrib.staticfiles.finders import get_finders

    manifest = Path(settings.STATIC_ROOT) / "staticfiles.json"
    if not manifest.exists():
        return True
    collected = manifest.stat().st_mtime
    return any(
        Path(storage.path(name)).stat().st_mtime > collected
        for finder in get_finders()
        for name, storage in finder.list([])
    )


def _one_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")


# --- Running ------------------------------------------------------------------------------------


def _wait_until_healthy(plan: Plan, processes: Processes) -> None:
    deadline = time.monotonic() + HEALTHY_WITHIN_S
    while not _is_healthy(plan.port):
        processes.check()
        if time.monotonic() > deadline:
            raise CannotRun(f"The web server does not answer on {plan.address}/healthz: see above.")
        time.sleep(0.05)


def _is_healthy(port: int) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False


def banner(plan: Plan, demo: Mapping[str, Any], database: str) -> str:
    """What to open, who to be, what to try. The demo's credentials are shown on purpose."""
    width = max(len(user["email"]) for user in demo["users"])
    logins = [f"    {u['email']:{width}}  {u['password']}  ({u['role']})" for u in demo["users"]]
    key = demo["apiKeys"]["operator"]
    headers = f"-H 'x-api-key: {key}' -H 'content-type: application/json'"
    command = (
        f'{{"datasetId":"{demo["datasetId"]}","clientToken":"try-\'$(date +%s)\'",'
        '"name":"hold_position","parameters":{"seconds":30}}'
    )
    read_id = "python3 -c 'import json,sys; print(json.load(sys.stdin)[\"id\"])'"
    return "\n".join(
        [
            "",
            f"  The console is ready: {plan.address}",
            "",
            *logins,
            "",
            f"  API key (operator): {key}",
            "  Issue a command, then dispatch it:",
            "",
            f"ID=$(curl -s {plan.address}/api/commands/issue {headers} "
            f"-d '{command}' | tee /dev/stderr | {read_id})",
            f"curl -s {plan.address}/api/commands/dispatch {headers} "
            """-d '{"commandId":"'$ID'"}'""",
            "",
            f"  Data: {database}; keys and demo credentials: {plan.data_dir}",
            "  Ctrl-C stops everything.",
            "",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
