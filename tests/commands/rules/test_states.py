"""The table of transitions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from commands.rules import states
from commands.rules.states import REISSUABLE, SETTLED, TRANSITIONS, State

CONTRACT: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "data" / "vectors.json").read_text()
)


def test_states_and_transitions_are_those_of_the_contract() -> None:
    assert [state.value for state in State] == CONTRACT["states"]
    assert [[a.value, b.value] for a, b in TRANSITIONS] == CONTRACT["transitions"]


def test_from_a_settled_state_only_a_retraction_leads_on() -> None:
    onward = {state: {b for a, b in TRANSITIONS if a == state} for state in SETTLED}

    assert onward.pop(State.RETRACTED) == set()
    assert all(states == {State.RETRACTED} for states in onward.values())


def test_every_state_is_reached_from_logged() -> None:
    reached = {State.LOGGED}
    for _ in State:
        reached |= {b for a, b in TRANSITIONS if a in reached}

    assert reached == set(State)


def test_only_what_came_to_nothing_is_reissued() -> None:
    assert {State.FAILED, State.TIMED_OUT, State.NACKED, State.RETRACTED} == REISSUABLE


def test_the_acknowledgement_timeout_is_that_of_the_contract() -> None:
    assert CONTRACT["ack_timeout_s"] == {
        "min": states.ACK_TIMEOUT_MIN_S,
        "max": states.ACK_TIMEOUT_MAX_S,
        "default": states.ACK_TIMEOUT_DEFAULT_S,
    }
