"""The schedule line: a delivery's attempts, planned and made, and its deadline on one axis of time.

Geometry only: values in, positions in percent of the width out. The axis bends so that the first
seconds stay readable beside the last hours: linear up to about the first wait, logarithmic above. On
such an axis waits that double lie equally far apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from organizations.console import words
from webhooks.console.rows import ERROR_WORDS
from webhooks.rules.policies import Policy

# Beyond the last thing drawn, so that its label has room.
MARGIN = 1.06
# Beyond this many percent a label is written to the left of its mark, and likewise at the other end.
LABEL_TURNS = 80.0

OUTCOMES: Final = {"delivered": "delivered", "retry": "failed", "failed": "failed", "lost": "lost"}


@dataclass(frozen=True)
class Made:
    """An attempt that was begun. ``verdict`` is empty while it is on the wire."""

    number: int
    due_at: datetime
    started_at: datetime
    finished_at: datetime | None = None
    verdict: str = ""
    status_code: int | None = None
    error_kind: str = ""


@dataclass(frozen=True)
class Facts:
    """What the line shows: ``begun_at`` is when the clock started. ``open`` while the console may still
    make attempts, ``waiting`` while anything is awaited. Only a command has a deadline for a report.
    """

    policy: Policy
    begun_at: datetime
    made: Sequence[Made]
    next_attempt_at: datetime | None
    open: bool
    waiting: bool
    now: datetime
    ack_deadline: datetime | None = None
    reported_at: datetime | None = None


@dataclass(frozen=True)
class Axis:
    """Maps seconds after the beginning to percent of the width."""

    origin: datetime
    knee_s: float
    end_s: float

    def x(self, at: datetime) -> float:
        offset = max((at - self.origin).total_seconds(), 0.0)
        place = math.log1p(offset / self.knee_s) / math.log1p(self.end_s / self.knee_s)
        return round(min(place, 1.0) * 100, 2)


@dataclass(frozen=True)
class Tick:
    """Where the policy puts an attempt, if every attempt took no time."""

    number: int
    x: float
    label: str

    @property
    def minor(self) -> bool:
        """Whether the label may go where there is little room: long schedules keep every fourth."""
        return self.number % 4 != 1


@dataclass(frozen=True)
class Marker:
    """An attempt. ``outcome``: delivered, failed, lost, flying, planned, or dropped (not needed now)."""

    number: int
    x: float
    outcome: str
    label: str
    lateness: str
    title: str


@dataclass(frozen=True)
class Flag:
    """A moment that is not an attempt."""

    x: float
    label: str
    at: datetime

    @property
    def side(self) -> str:
        """Where the label stands to stay inside the drawing."""
        if self.x > LABEL_TURNS:
            return "turned"
        return "leading" if self.x < 100 - LABEL_TURNS else ""


@dataclass(frozen=True)
class Line:
    """All that is drawn."""

    axis: Axis
    ticks: Sequence[Tick]
    markers: Sequence[Marker]
    deadline: Flag | None
    reported: Flag | None
    now: Flag | None

    @property
    def summary(self) -> str:
        """The drawing in words."""
        marks = "; ".join(marker.title for marker in self.markers if marker.outcome != "dropped")
        deadline = f" {self.deadline.label}." if self.deadline else ""
        return f"{marks or 'No attempt yet'}.{deadline}"


def draw(facts: Facts) -> Line:
    """Place everything on the axis."""
    planned = _planned(facts)
    axis = _axis(facts, [at for _, at in planned])
    return Line(
        axis=axis,
        ticks=_ticks(facts, axis),
        markers=[*(_made(axis, made) for made in facts.made), *_ahead(facts, axis, planned)],
        deadline=_flag(axis, _deadline_words(facts), facts.ack_deadline),
        reported=_flag(axis, "Report", facts.reported_at),
        now=_flag(axis, "now", facts.now if facts.waiting else None),
    )


def _flag(axis: Axis, label: str, at: datetime | None) -> Flag | None:
    return Flag(axis.x(at), label, at) if at else None


def _deadline_words(facts: Facts) -> str:
    return f"Ack deadline {words.clock(facts.ack_deadline)[:8]}" if facts.ack_deadline else ""


def plan(policy: Policy) -> Sequence[Tick]:
    """The policy alone, before anything is sent."""
    knee_s, end_s = _knee(policy), max(policy.accumulated_s[-1], 1) * MARGIN
    scale = math.log1p(end_s / knee_s)
    return [
        Tick(number, round(math.log1p(offset / knee_s) / scale * 100, 2), words.span(offset))
        for number, offset in enumerate(policy.accumulated_s, 1)
    ]


def _knee(policy: Policy) -> float:
    """The first wait: below it the axis is nearly linear. Any number will do for a single attempt."""
    return float(next((wait for wait in policy.waits_s if wait), 1))


def _axis(facts: Facts, planned: Sequence[datetime]) -> Axis:
    shown = [
        *planned,
        *(made.finished_at or made.started_at for made in facts.made),
        *(at for at in (facts.ack_deadline, facts.reported_at) if at),
    ]
    offsets = [(at - facts.begun_at).total_seconds() for at in shown]
    # One: a single attempt has no length of its own.
    end_s = max(*offsets, facts.policy.accumulated_s[-1], 1.0)
    return Axis(facts.begun_at, _knee(facts.policy), end_s * MARGIN)


def _ticks(facts: Facts, axis: Axis) -> list[Tick]:
    return [
        Tick(number, axis.x(facts.begun_at + timedelta(seconds=offset)), words.span(offset))
        for number, offset in enumerate(facts.policy.accumulated_s, 1)
    ]


def _planned(facts: Facts) -> list[tuple[int, datetime]]:
    """The attempts to come: the next where it is due, the others if attempts took no time."""
    number = len(facts.made) + 1
    if facts.next_attempt_at:
        at = facts.next_attempt_at
    elif facts.made and number <= facts.policy.attempts:
        last = facts.made[-1]
        at = (last.finished_at or last.started_at) + timedelta(
            seconds=facts.policy.waits_s[number - 1]
        )
    else:
        return []
    times = []
    while number <= facts.policy.attempts:
        times.append((number, at))
        at += timedelta(seconds=facts.policy.wait_after(number) or 0)
        number += 1
    return times


def _ahead(facts: Facts, axis: Axis, planned: Sequence[tuple[int, datetime]]) -> list[Marker]:
    outcome = "planned" if facts.open else "dropped"
    word = "planned for" if facts.open else "not needed, was planned for"
    return [
        Marker(number, axis.x(at), outcome, "", "", f"Attempt {number}: {word} {words.clock(at)}")
        for number, at in planned
    ]


def _made(axis: Axis, made: Made) -> Marker:
    late_ms = max(round((made.started_at - made.due_at).total_seconds() * 1000), 0)
    outcome = OUTCOMES.get(made.verdict, "flying")
    label = _label(made)
    return Marker(
        number=made.number,
        x=axis.x(made.started_at),
        outcome=outcome,
        label=label,
        lateness=f"+{words.milliseconds(late_ms)}",
        title=f"Attempt {made.number}: {label}, started {words.milliseconds(late_ms)} after it was due",
    )


def _label(made: Made) -> str:
    if made.status_code is not None:
        return str(made.status_code)
    if made.error_kind:
        return ERROR_WORDS.get(made.error_kind, made.error_kind)
    return "unknown" if made.verdict else "on the wire"
