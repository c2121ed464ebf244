"""The console the demo runs against: one that is up already, or one started for it and stopped.

A console of its own gets a temporary data directory, its own embedded PostgreSQL and free ports: it
touches neither a running console nor the database of `DATABASE_URL`.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from demo.console import answers
from demo.environment import HOST, PROJECT_ROOT, Environment, local_url
from demo.progress import Progress
from demo.seeded import DemoFile, DemoOrganization, NotSeeded, read_demo_file

# initdb, migrations and seeding take a few seconds; a loaded machine with a cold disk takes many.
START_S = 90
# Attempts on the wire may use their 10 s before the supervisor leaves; then it is stopped by force.
STOP_S = 20
LOG_LINES_SHOWN = 40


class CannotStart(Exception):
    """No console could be used or started; the text says why."""


@dataclass(frozen=True)
class Running:
    """`log` is where a console started for the demo writes; None for one that was up already."""

    console_url: str
    organization: DemoOrganization
    log: Path | None = None

    @property
    def receiver_url(self) -> str:
        url = urlsplit(self.organization.endpoints["accept-and-ack"].url)
        return f"{url.scheme}://{url.netloc}"

    def log_tail(self) -> str:
        return _tail(self.log) if self.log else ""


@contextmanager
def running_console(environment: Environment, progress: Progress) -> Iterator[Running]:
    running = _already_running(environment, progress)
    if running is not None:
        yield running
        return
    with _own_console(progress) as running:
        yield running


def _already_running(environment: Environment, progress: Progress) -> Running | None:
    if not answers(environment.console_url):
        return None
    try:
        running = Running(environment.console_url, read_demo_file(environment.demo_file))
    except NotSeeded as problem:
        progress.note(f"The console on {environment.console_url} has no demo: {problem}.")
        return None
    if not answers(running.receiver_url):
        raise CannotStart(
            f"The console on {running.console_url} is up, but its demo receiver on "
            f"{running.receiver_url} does not answer. Stop the console and start it with make run."
        )
    progress.note(f"Using the console on {running.console_url}.")
    return running


@contextmanager
def _own_console(progress: Progress) -> Iterator[Running]:
    directory = Path(tempfile.mkdtemp(prefix="console-demo-"))
    directory.chmod(0o711)  # run as root, PostgreSQL's account must pass, to keep its data in here
    with ExitStack() as cleanup:
        cleanup.callback(shutil.rmtree, directory, ignore_errors=True)
        console_port, receiver_port = _free_ports(2)
        log = directory / "console.log"
        process = _start(directory, log, console_port, receiver_port)
        cleanup.callback(_stop, process, progress)
        progress.note(f"No console is running: starting one on {local_url(console_port)}.")
        yield _wait_until_up(process, directory, local_url(console_port), log, progress)


def _start(
    directory: Path, log: Path, console_port: int, receiver_port: int
) -> subprocess.Popen[bytes]:
    """The supervisor in a session of its own: a Ctrl-C here reaches it as one orderly stop."""
    variables = {k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "CONSOLE_URL")}
    variables |= {
        "CONSOLE_DATA_DIR": str(directory / "data"),
        "CONSOLE_PORT": str(console_port),
        "RECEIVER_PORT": str(receiver_port),
        "ENDPOINT_ALLOW_HTTP": "1",
        "ENDPOINT_ALLOWED_NETWORKS": "127.0.0.0/8,::1/128",
        "ALLOWED_HOSTS": f"localhost,{HOST}",
    }
    # The supervisor's banner shows the demo's passwords.
    with open(log, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as output:
        return subprocess.Popen(
            [sys.executable, "-m", "config.supervisor"],
            cwd=PROJECT_ROOT,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _wait_until_up(
    process: subprocess.Popen[bytes], directory: Path, url: str, log: Path, progress: Progress
) -> Running:
    demo_file = DemoFile(directory / "data" / "demo.json")
    until = time.monotonic() + START_S
    while time.monotonic() < until:
        if process.poll() is not None:
            raise CannotStart(
                f"The console stopped with status {process.returncode}.\n{_tail(log)}"
            )
        progress.show("starting the console")
        organization = demo_file.current()
        if organization is not None and answers(url):
            running = Running(url, organization, log)
            if answers(running.receiver_url):
                return running
        time.sleep(0.2)
    raise CannotStart(f"The console was not up after {START_S} s.\n{_tail(log)}")


def _stop(process: subprocess.Popen[bytes], progress: Progress) -> None:
    # A second Ctrl-C while waiting would leave servers and a database behind.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    progress.show("stopping the console")
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    progress.clear()


def _free_ports(count: int) -> list[int]:
    """Held all at once, so that they differ, and given back for the servers to take."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server((HOST, 0))) for _ in range(count)]
        return [int(each.getsockname()[1]) for each in sockets]


def _tail(log: Path) -> str:
    return "\n".join(log.read_text("utf-8", errors="replace").splitlines()[-LOG_LINES_SHOWN:])
