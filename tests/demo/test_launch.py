"""Which console the demo uses, and how it makes room for the failures it is about to cause."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from demo.__main__ import revive_endpoints
from demo.console import Console
from demo.environment import Environment, EnvironmentProblem, read_environment
from demo.launcher import CannotStart, running_console
from demo.progress import Progress
from demo.seeded import NotSeeded, read_demo_file
from tests.demo.parts import SECRET, FakeConsole


class RecordingOwner(Console):
    """An owner's client whose endpoints are all in the same health."""

    def __init__(self, *, enabled: bool, failures_left: int | None) -> None:
        super().__init__("http://127.0.0.1:1", "owner-key")
        self.health = {"enabled": enabled, "health": {"failuresUntilDisabled": failures_left}}
        self.acts: set[tuple[str, str]] = set()

    def endpoint(self, endpoint_id: str) -> dict[str, Any]:
        return {"id": endpoint_id, "name": endpoint_id, **self.health}

    def enable_endpoint(self, endpoint_id: str) -> None:
        self.acts.add(("enable", endpoint_id))

    def save_endpoint(self, endpoint_id: str, name: str) -> None:
        self.acts.add(("save", endpoint_id))


@pytest.mark.parametrize(
    ("enabled", "failures_left", "act"),
    [
        (True, 20, None),
        (True, None, None),
        (True, 3, None),
        (True, 2, "save"),
        (True, 0, "save"),
        (False, 0, "enable"),
    ],
)
def test_an_endpoint_with_little_room_to_fail_in_is_given_more(
    demo_path: Path, enabled: bool, failures_left: int | None, act: str | None
) -> None:
    owner = RecordingOwner(enabled=enabled, failures_left=failures_left)
    revive_endpoints(owner, read_demo_file(demo_path), Progress(io.StringIO()))
    assert (act, "endpoint-broken") in owner.acts if act else not owner.acts
    assert ("enable", "endpoint-hang") not in owner.acts


def test_a_console_without_its_receiver_is_not_used_and_the_reason_is_said(
    console: FakeConsole, demo_path: Path
) -> None:
    environment = Environment(console.url, 1, demo_path.parent)
    with (
        pytest.raises(CannotStart, match=r"its demo receiver on http://127\.0\.0\.1:1 does not"),
        running_console(environment, Progress(io.StringIO())),
    ):
        pytest.fail("there is no receiver to use")


@pytest.mark.parametrize("text", ["", "[]", "{}", f'{{"apiKeys": "{SECRET}"}}', f'"{SECRET}'])
def test_a_file_that_is_no_demo_file_is_refused_without_being_quoted(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "demo.json"
    path.write_text(text)
    with pytest.raises(NotSeeded) as refused:
        read_demo_file(path)
    assert str(refused.value) == "demo.json is not a complete demo file"


def test_an_organization_does_not_show_its_secrets_when_printed(demo_path: Path) -> None:
    printed = repr(read_demo_file(demo_path))
    assert "endpoint-flaky" in printed
    assert SECRET not in printed
    assert "key-of-the-operator" not in printed


def test_the_receiver_listens_beside_the_console_unless_told_otherwise() -> None:
    assert read_environment({}).receiver_port == 8001
    assert read_environment({"CONSOLE_PORT": "9000"}).receiver_port == 9001
    assert read_environment({"CONSOLE_PORT": "9000", "RECEIVER_PORT": "7"}).receiver_port == 7
    assert read_environment({"CONSOLE_PORT": "9000"}).console_url == "http://127.0.0.1:9000"
    assert read_environment({"CONSOLE_URL": "http://console/"}).console_url == "http://console"


@pytest.mark.parametrize("port", ["0", "65536", "-1", "80 80", "٣"])
def test_a_port_that_is_none_is_refused_by_name(port: str) -> None:
    with pytest.raises(EnvironmentProblem, match="CONSOLE_PORT"):
        read_environment({"CONSOLE_PORT": port})
