"""Where the console and its demo receiver are, read from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PROJECT_ROOT = Path(__file__).resolve().parent.parent
HOST = "127.0.0.1"
DEFAULT_CONSOLE_PORT = 8000


class EnvironmentProblem(Exception):
    """An environment variable does not hold what its name promises."""


@dataclass(frozen=True)
class Environment:
    console_url: str
    receiver_port: int
    data_dir: Path

    @property
    def demo_file(self) -> Path:
        return self.data_dir / "demo.json"


def read_environment(variables: Mapping[str, str] = os.environ) -> Environment:
    """Raise `EnvironmentProblem` naming the variable that is malformed."""
    console_port = _port(variables, "CONSOLE_PORT", DEFAULT_CONSOLE_PORT)
    return Environment(
        console_url=variables.get("CONSOLE_URL", "").rstrip("/") or local_url(console_port),
        receiver_port=_port(variables, "RECEIVER_PORT", console_port + 1),
        data_dir=PROJECT_ROOT / (variables.get("CONSOLE_DATA_DIR") or "var"),
    )


def local_url(port: int) -> str:
    return f"http://{HOST}:{port}"


def _port(variables: Mapping[str, str], name: str, default: int) -> int:
    text = variables.get(name) or str(default)
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise EnvironmentProblem(f"{name} must be a port between 1 and 65535, not {text!r}")
    return int(text)
