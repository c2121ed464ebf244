"""Processes of a Procfile, with small Python programs in the roles."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.processes import ProcessEnded, Processes, read_procfile

PROJECT = Path(__file__).resolve().parents[2]

# Reports to the test's socket once it can be stopped, and writes its name down when it is.
OBEDIENT = """
import os, signal, socket
def stop(*_):
    with open(os.environ["LOG"], "a") as log:
        log.write(os.environ["NAME"] + "\\n")
    raise SystemExit
signal.signal(signal.SIGTERM, stop)
socket.create_connection(("127.0.0.1", int(os.environ["READY"])))
signal.pause()
"""
DEAF = """
import os, signal, socket
signal.signal(signal.SIGTERM, signal.SIG_IGN)
socket.create_connection(("127.0.0.1", int(os.environ["READY"])))
while True:
    signal.pause()
"""
# Leaves a grandchild in a session of its own whose parent is gone, then cleans up after it.
ABANDONER = """
import subprocess, sys
from config.processes import adopt_orphans, kill_descendants
adopt_orphans()
started = subprocess.run(
    ["sh", "-c", "setsid sleep 60 >/dev/null 2>&1 & echo $!"], stdout=subprocess.PIPE, text=True
)
kill_descendants()
print(started.stdout.strip())
"""


@pytest.fixture
def ready() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(30)
        yield server


def python(program: str, **variables: str) -> str:
    """A Procfile's command that runs this program."""
    settings = " ".join(f"{name}={value}" for name, value in variables.items())
    return f"env {settings} {shlex.quote(sys.executable)} -c {shlex.quote(program)}"


def environment(ready: socket.socket, log: Path) -> dict[str, str]:
    return {**os.environ, "READY": str(ready.getsockname()[1]), "LOG": str(log)}


def test_a_procfile_is_read_in_its_order(tmp_path: Path) -> None:
    (tmp_path / "Procfile").write_text("# a comment\nweb: serve --port 1\n\nworker:  work\n")

    assert list(read_procfile(tmp_path / "Procfile").items()) == [
        ("web", "serve --port 1"),
        ("worker", "work"),
    ]


def test_output_comes_with_the_name_of_its_process(capfd: pytest.CaptureFixture[str]) -> None:
    processes = Processes({"one": "printf 'a\\nb\\n'", "three": "sleep 60"}, os.environ)
    processes.start()

    with pytest.raises(ProcessEnded, match=r"one ended \(exit code 0\)"):
        processes.wait()
    processes.stop(5)

    assert capfd.readouterr().out.splitlines() == ["one   | a", "one   | b"]


@pytest.mark.parametrize(
    ("command", "how"),
    [("sh -c 'exit 3'", "exit code 3"), ("sh -c 'kill -9 $$'", "SIGKILL")],
)
def test_the_end_of_one_process_is_told_with_its_name_and_how(command: str, how: str) -> None:
    processes = Processes({"lasting": "sleep 60", "brief": command}, os.environ)
    processes.start()

    with pytest.raises(ProcessEnded, match=rf"brief ended \({how}\)"):
        processes.wait()

    processes.stop(5)


def test_the_last_process_ends_before_the_one_above_it_is_asked(
    ready: socket.socket, tmp_path: Path
) -> None:
    names = ["receiver", "web", "cluster"]
    commands = {name: python(OBEDIENT, NAME=name) for name in names}
    processes = Processes(commands, environment(ready, tmp_path / "log"))
    processes.start()
    for _ in names:
        ready.accept()[0].close()

    processes.stop(20)

    assert (tmp_path / "log").read_text().split() == ["cluster", "web", "receiver"]


def test_a_process_that_does_not_obey_is_killed_when_the_grace_is_over(
    ready: socket.socket, tmp_path: Path
) -> None:
    processes = Processes({"deaf": python(DEAF)}, environment(ready, tmp_path / "log"))
    processes.start()
    ready.accept()[0].close()
    processes.check()

    processes.stop(0.2)

    with pytest.raises(ProcessEnded, match=r"deaf ended \(SIGKILL\)"):
        processes.check()


def test_a_grandchild_that_got_away_is_found_and_killed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ABANDONER], cwd=PROJECT, capture_output=True, text=True, check=True
    )

    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)
