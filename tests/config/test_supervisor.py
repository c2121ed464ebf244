"""What a person sees of ``make run``: one line for each mistake, a banner, and an end without leftovers."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.scenarios.workers import wait_for

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def free_ports() -> tuple[int, int]:
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as two,
    ):
        return one.getsockname()[1], two.getsockname()[1]


@pytest.fixture
def variables(free_ports: tuple[int, int], place: Path) -> dict[str, str]:
    """The environment of a fresh installation, on ports and a data folder of its own."""
    ours = ("DATABASE_URL", "SECRET_KEY", "CONSOLE_URL")
    inherited = {name: value for name, value in os.environ.items() if name not in ours}
    return inherited | {
        "CONSOLE_DATA_DIR": str(place / "var"),
        "CONSOLE_PORT": str(free_ports[0]),
        "RECEIVER_PORT": str(free_ports[1]),
    }


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def refusal(variables: dict[str, str]) -> str:
    """What a start says that must not succeed: one line, exit code 1, no traceback."""
    done = subprocess.run(
        [sys.executable, "-m", "config.supervisor"],
        cwd=PROJECT,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    assert len(done.stdout.splitlines()) == 1, done.stdout
    return done.stdout.strip()


@pytest.mark.parametrize("name", ["CONSOLE_PORT", "RECEIVER_PORT"])
def test_a_port_in_use_is_one_line(variables: dict[str, str], taken_port: int, name: str) -> None:
    said = refusal(variables | {name: str(taken_port)})

    assert said == (
        f"Port {taken_port} is in use: stop what uses it, or choose another with {name}=…"
    )


@pytest.mark.parametrize("text", ["http", "0", "65536", "-1", "80 80"])
def test_a_malformed_port_is_one_line(variables: dict[str, str], text: str) -> None:
    said = refusal(variables | {"CONSOLE_PORT": text})

    assert said == f"CONSOLE_PORT must be a port from 1 to 65535, not {text!r}."


@pytest.mark.parametrize(
    "url",
    [
        "nonsense-topsecret",
        "postgres://user:topsecret@host:port/name",
        "postgres://user:topsecret@host/",
        "mysql://user:topsecret@host/name",
        "postgres://user:topsecret@[::1/name",
    ],
)
def test_a_malformed_database_url_is_one_line_without_the_password(
    variables: dict[str, str], url: str
) -> None:
    said = refusal(variables | {"DATABASE_URL": url})

    assert said.startswith("DATABASE_URL is malformed: it must look like postgres://")
    assert "topsecret" not in said


def test_a_database_that_does_not_answer_is_one_line_without_the_password(
    variables: dict[str, str], free_ports: tuple[int, int]
) -> None:
    url = f"postgres://user:topsecret@127.0.0.1:{free_ports[0]}/name"

    said = refusal(variables | {"DATABASE_URL": url})

    assert re.match(
        "The database cannot be used: .*[Cc]onnection refused.*check DATABASE_URL", said
    )
    assert "topsecret" not in said


def test_a_data_folder_that_cannot_be_written_is_one_line(
    variables: dict[str, str], place: Path
) -> None:
    (place / "file").touch()

    said = refusal(variables | {"CONSOLE_DATA_DIR": str(place / "file" / "var")})

    assert said.startswith(f"Cannot write to {place / 'file' / 'var'} (Not a directory)")
    assert said.endswith("set CONSOLE_DATA_DIR to a folder of yours.")


def test_a_second_console_on_the_same_data_is_refused(
    variables: dict[str, str], place: Path
) -> None:
    (place / "var").mkdir()
    with (place / "var" / "console.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711\n")
        lock.flush()

        said = refusal(variables)

    assert said.startswith(f"A console already runs with the data in {place / 'var'}")
    assert "(process 4711)" in said


def test_a_malformed_setting_is_one_line_and_leaves_no_server(variables: dict[str, str]) -> None:
    said = refusal(variables | {"ENDPOINT_ALLOW_HTTP": "yes"})

    assert said == "ENDPOINT_ALLOW_HTTP must be 1 or 0"


class Console:
    """A console that runs as a person runs it, and what it printed so far."""

    def __init__(self, variables: dict[str, str]) -> None:
        self.terminal, stdin = os.openpty()
        self.data_dir = Path(variables["CONSOLE_DATA_DIR"])
        self.address = f"http://127.0.0.1:{variables['CONSOLE_PORT']}"
        self.said: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-m", "config.supervisor"],
            cwd=PROJECT,
            env=variables,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=_heed_hangups,
        )
        os.close(stdin)

    def wait_until_ready(self) -> None:
        self.wait_until_said("Ctrl-C stops everything")

    def wait_until_said(self, words: str) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line.rstrip("\n"))
            if words in line:
                return
        pytest.fail("\n".join(self.said))

    def end(self, by: Callable[[Console], None]) -> float:
        """How long it took to end, in seconds."""
        started = time.monotonic()
        by(self)
        rest, _ = self.process.communicate(timeout=60)
        self.said += rest.splitlines()
        assert self.process.returncode == 0, "\n".join(self.said)
        return time.monotonic() - started

    def leftovers(self) -> list[str]:
        """Processes that know this console's data folder from their command or environment."""
        known = os.fsencode(self.data_dir)
        return [
            (folder / "cmdline").read_text().replace("\0", " ")
            for folder in Path("/proc").glob("[0-9]*")
            if int(folder.name) != os.getpid() and known in _words(folder)
        ]


def _heed_hangups() -> None:
    """Also where the tests themselves run under nohup, which a process inherits."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _words(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
    except OSError:
        return b""


@pytest.fixture
def start(variables: dict[str, str]) -> Iterator[Callable[[], Console]]:
    """Start consoles, one after the other, on the same ports and data."""
    started: list[Console] = []

    def make() -> Console:
        started.append(Console(variables))
        started[-1].wait_until_ready()
        return started[-1]

    yield make
    for console in started:
        if console.process.poll() is None:
            console.process.terminate()
            console.process.communicate()
        if console.terminal >= 0:
            os.close(console.terminal)


def is_healthy(console: Console) -> bool:
    try:
        with urllib.request.urlopen(f"{console.address}/healthz") as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def press_ctrl_c(console: Console) -> None:
    console.process.send_signal(signal.SIGINT)
    console.process.send_signal(signal.SIGINT)


def close_the_shell(console: Console) -> None:
    console.process.send_signal(signal.SIGHUP)


def close_the_terminal(console: Console) -> None:
    os.close(console.terminal)
    console.terminal = -1


def test_a_second_start_keeps_the_data_and_every_end_leaves_nothing_behind(
    start: Callable[[], Console],
) -> None:
    demos = set()
    for end in (press_ctrl_c, close_the_shell, close_the_terminal):
        console = start()
        demos.add((console.data_dir / "demo.json").read_text())
        with urllib.request.urlopen(f"{console.address}/healthz") as answer:
            assert answer.status == 200

        assert console.end(end) < 12, end.__name__

        assert console.leftovers() == [], end.__name__
        assert console.said[-1] == "Stopped."
    assert len(demos) == 1


def test_the_banner_shows_logins_and_lines_to_try_that_work(start: Callable[[], Console]) -> None:
    console = start()
    demo = json.loads((console.data_dir / "demo.json").read_text())
    said = "\n".join(console.said)
    for user in demo["users"]:
        assert re.search(f"{user['email']} +{user['password']}  \\({user['role']}\\)", said)

    to_try = [line for line in console.said if "curl" in line]
    done = subprocess.run(
        ["bash", "-c", "\n".join(to_try)], capture_output=True, text=True, check=True
    )

    issued, dispatched = json.loads(done.stderr), json.loads(done.stdout)
    assert issued["state"] == "logged"
    assert dispatched["id"] == issued["id"]
    assert dispatched["dispatchedAt"] is not None


def test_a_postgresql_that_dies_is_started_again(start: Callable[[], Console]) -> None:
    console = start()
    [pid_file] = console.data_dir.rglob("postmaster.pid")

    os.kill(int(pid_file.read_text().splitlines()[0]), signal.SIGKILL)
    console.wait_until_said("PostgreSQL runs again.")

    wait_for(lambda: is_healthy(console))
    assert console.end(press_ctrl_c) < 12
    assert console.leftovers() == []


def test_when_one_process_dies_everything_stops_and_says_which(
    start: Callable[[], Console],
) -> None:
    console = start()
    gunicorns = subprocess.run(
        ["pgrep", "-f", f"gunicorn.*{console.address.removeprefix('http://')}"],
        capture_output=True,
        text=True,
        check=True,
    )

    os.kill(min(map(int, gunicorns.stdout.split())), signal.SIGKILL)
    rest, _ = console.process.communicate(timeout=60)

    assert console.process.returncode == 1
    assert rest.splitlines()[-1] == "web ended (SIGKILL); its last words are above."
    assert console.leftovers() == []
