"""Delivery policies: how often, how far apart, and when an endpoint has failed too often.

A schedule is a contract: receivers size their deduplication window against it. So there is no jitter,
and a ``Retry-After`` header is recorded but moves nothing.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

# One attempt from name resolution to the last header byte, seconds. The same for every policy, and no
# setting changes it: a receiver sizes itself by it.
ATTEMPT_TIMEOUT_S: Final = 10
# Bounds of a policy that the settings add. More is a typing error, or a promise that nobody can keep:
# the preset `telemetry` has 13 attempts over 34 hours.
MAX_ATTEMPTS = 30
MAX_WAIT_S = 7 * 86_400
MAX_SPAN_S = 30 * 86_400
MAX_COUNT = 1000
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")


class RuleKind(StrEnum):
    """What a disable rule counts."""

    ATTEMPTS_IN_A_ROW = "attempts_in_a_row"
    DELIVERIES_IN_A_ROW = "deliveries_in_a_row"


@dataclass(frozen=True)
class DisableRule:
    """Disable the endpoint when its last ``count`` attempts (or deliveries) all failed."""

    kind: RuleKind
    count: int


@dataclass(frozen=True)
class Planned:
    """An attempt as the schedule has it: its wait, and that of all so far, in seconds."""

    attempt: int
    wait_s: int
    accumulated_s: int


@dataclass(frozen=True)
class Policy:
    """A retry schedule with its verdict on refusals and its disable rule.

    ``waits_s`` has one wait an attempt, in seconds, each counted from the end of the attempt before;
    the first is 0. ``stops_on_refusal``: a 4xx (but 429), a 3xx or a blocked address ends the delivery.
    """

    name: str
    waits_s: tuple[int, ...]
    stops_on_refusal: bool
    disable_rule: DisableRule

    @property
    def attempts(self) -> int:
        """Attempts at most, the first included."""
        return len(self.waits_s)

    @property
    def accumulated_s(self) -> tuple[int, ...]:
        """When each attempt is due, in seconds after the first, if attempts took no time."""
        return tuple(itertools.accumulate(self.waits_s))

    @property
    def planned(self) -> tuple[Planned, ...]:
        """The schedule, a line an attempt."""
        lines = zip(self.waits_s, self.accumulated_s, strict=True)
        return tuple(Planned(number, *line) for number, line in enumerate(lines, start=1))

    def wait_after(self, number: int) -> int | None:
        """Seconds from the end of attempt ``number`` (from 1) to the next; None after the last."""
        return self.waits_s[number] if number < self.attempts else None


COMMAND: Final = Policy(
    name="command",
    waits_s=(0, 5, 25, 125, 625),
    stops_on_refusal=True,
    disable_rule=DisableRule(RuleKind.ATTEMPTS_IN_A_ROW, 20),
)
TELEMETRY: Final = Policy(
    name="telemetry",
    waits_s=(0, *(30 * 2**n for n in range(12))),
    stops_on_refusal=True,
    disable_rule=DisableRule(RuleKind.ATTEMPTS_IN_A_ROW, 20),
)
EVENT: Final = Policy(
    name="event",
    waits_s=(0, 5, 10),
    stops_on_refusal=False,
    disable_rule=DisableRule(RuleKind.DELIVERIES_IN_A_ROW, 5),
)
PRESETS: Final[dict[str, Policy]] = {p.name: p for p in (COMMAND, TELEMETRY, EVENT)}

# A test that an owner waits for: one answer, at once. No endpoint has it, and its rule is never judged.
PING: Final = Policy(
    name="ping",
    waits_s=(0,),
    stops_on_refusal=True,
    disable_rule=DisableRule(RuleKind.ATTEMPTS_IN_A_ROW, MAX_COUNT),
)


# --- policies of the settings -------------------------------------------------------------------


class PolicyRefused(ValueError):
    """A policy that cannot work; the message says which and why."""


def parse(text: str) -> dict[str, Policy]:
    """The policies that a setting adds, by name: JSON, ``{name: {waitsS, stopsOnRefusal, disableRule}}``.

    Raises PolicyRefused.
    """
    try:
        found = json.loads(text, object_pairs_hook=_without_repetition)
    except json.JSONDecodeError as error:
        raise PolicyRefused(f"This is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise PolicyRefused('Policies are an object by name, such as {"fast": {...}}.')
    return {name: _own(name, terms) for name, terms in found.items()}


def _own(name: str, terms: Any) -> Policy:
    if not _NAME.fullmatch(name):
        raise PolicyRefused(
            f"{name[:50]!r} is no name of a policy: up to 32 of a-z, 0-9, _ and -, a letter first."
        )
    if name in PRESETS or name == PING.name:
        raise PolicyRefused(f"{name} is a policy of the console: it cannot be changed.")
    try:
        return from_terms(name, terms)
    except PolicyRefused as refusal:
        raise PolicyRefused(f"{name}: {refusal}") from None


def from_terms(name: str, terms: Any) -> Policy:
    """A policy by its terms, in the form of the setting. Raises PolicyRefused."""
    fields = _object(terms, "A policy", {"waitsS", "stopsOnRefusal", "disableRule"})
    stops = fields["stopsOnRefusal"]
    if not isinstance(stops, bool):
        raise PolicyRefused("stopsOnRefusal is true or false.")
    return Policy(name, _waits(fields["waitsS"]), stops, _rule(fields["disableRule"]))


def terms_of(policy: Policy) -> dict[str, Any]:
    """The terms of a policy, as ``from_terms`` takes them."""
    rule = policy.disable_rule
    return {
        "waitsS": list(policy.waits_s),
        "stopsOnRefusal": policy.stops_on_refusal,
        "disableRule": {"kind": rule.kind.value, "count": rule.count},
    }


def _waits(waits: Any) -> tuple[int, ...]:
    if not isinstance(waits, list) or not 1 <= len(waits) <= MAX_ATTEMPTS:
        raise PolicyRefused(f"waitsS is a list of 1 to {MAX_ATTEMPTS} waits, one an attempt.")
    if any(type(wait) is not int for wait in waits):
        raise PolicyRefused("Each wait is a whole number of seconds.")
    if waits[0] != 0:
        raise PolicyRefused("The first wait is 0: the first attempt is due at once.")
    if not all(1 <= wait <= MAX_WAIT_S for wait in waits[1:]):
        raise PolicyRefused(f"Each wait after the first is 1 to {MAX_WAIT_S} seconds (7 days).")
    if sum(waits) > MAX_SPAN_S:
        raise PolicyRefused(f"All waits together are at most {MAX_SPAN_S} seconds (30 days).")
    return tuple(waits)


def _rule(rule: Any) -> DisableRule:
    fields = _object(rule, "disableRule", {"kind", "count"})
    kinds = [kind.value for kind in RuleKind]
    if fields["kind"] not in kinds:
        raise PolicyRefused(f"The kind of disableRule is one of {', '.join(kinds)}.")
    count = fields["count"]
    if type(count) is not int or not 1 <= count <= MAX_COUNT:
        raise PolicyRefused(f"The count of disableRule is a whole number from 1 to {MAX_COUNT}.")
    return DisableRule(RuleKind(fields["kind"]), count)


def _object(value: Any, what: str, names: set[str]) -> Mapping[str, Any]:
    if not isinstance(value, dict) or set(value) != names:
        raise PolicyRefused(f"{what} is an object with {', '.join(sorted(names))}, nothing else.")
    return value


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise PolicyRefused("A name occurs twice in one object.")
    return found
