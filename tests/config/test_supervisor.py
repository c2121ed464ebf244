"""What a person sees of ``make run``: one line for each mistake, a banner, and an end without leftovers."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def free_ports() -> tuple[int, int]:
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as two,
    ):
        return one.getsockname()[1], two.getsockname()[1]


@pytest.fixture
def variables(free_ports: tuple[int, int], tmp_path: Path) -> dict[str, str]:
    """The environment of a fresh installation, on ports and a data folder of its own."""
    ours = ("DATABASE_URL", "SECRET_KEY", "CONSOLE_URL")
    inherited = {name: value for name, value in os.environ.items() if name not in ours}
    return inherited | {
        "CONSOLE_DATA_DIR": str(tmp_path / "var"),
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
    variables: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()

    said = refusal(variables | {"CONSOLE_DATA_DIR": str(tmp_path / "file" / "var")})

    assert said.startswith(f"Cannot write to {tmp_path / 'file' / 'var'} (Not a directory)")
    assert said.endswith("set CONSOLE_DATA_DIR to a folder of yours.")


def test_a_second_console_on_the_same_data_is_refused(
    variables: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "var").mkdir()
    with (tmp_path / "var" / "console.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711\n")
        lock.flush()

        said = refusal(variables)

    assert said.startswith(f"A console already runs with the data in {tmp_path / 'var'}")
    assert "(process 4711)" in said


def test_a_malformed_setting_is_one_line_and_leaves_no_server(variables: dict[str, str]) -> None:
    said = refusal(variables | {"ENDPOINT_ALLOW_HTTP": "yes"})

    assert said == "ENDPOINT_ALLOW_HTTP must be 1 or 0"
