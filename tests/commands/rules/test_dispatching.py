"""Whether a command may be dispatched, for everything that it depends on."""

from __future__ import annotations

import itertools

import pytest

from commands.rules.dispatching import Readiness, refusal
from commands.rules.states import State

ARMED = [True, False]
ENDPOINT = [True, False, None]


def test_a_logged_command_of_an_armed_dataset_with_an_enabled_endpoint_is_dispatched() -> None:
    assert refusal(Readiness(State.LOGGED, dataset_armed=True, endpoint_enabled=True)) is None


@pytest.mark.parametrize(
    ("armed", "enabled", "code"),
    [
        (False, True, "dataset_unarmed"),
        (False, False, "dataset_unarmed"),
        (False, None, "dataset_unarmed"),
        (True, None, "no_endpoint"),
        (True, False, "endpoint_disabled"),
    ],
)
def test_a_logged_command_waits_for_what_can_be_mended(
    armed: bool, enabled: bool | None, code: str
) -> None:
    assert refusal(Readiness(State.LOGGED, armed, enabled)) == code


@pytest.mark.parametrize("state", [state for state in State if state != State.LOGGED])
def test_what_cannot_be_mended_comes_first(state: State) -> None:
    code = "retracted" if state == State.RETRACTED else "already_dispatched"

    for armed, enabled in itertools.product(ARMED, ENDPOINT):
        assert refusal(Readiness(state, armed, enabled)) == code
