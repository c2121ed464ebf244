"""Issues and dispatches the commands of the demo, follows each to its end, tells what was seen."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from demo.console import Console, ReceiverLog, Refused
from demo.expectations import Observation, attempts_from_rows, instant, posts_from_log, unmet
from demo.progress import Progress
from demo.scenarios import QUICK, SCENARIOS, WARM_UP, Scenario

SETTLED = {"acked", "nacked", "timed_out", "failed", "retracted"}
POLL_S = 0.5
# The slowest commands end about 31 s after their dispatch; twice that and the start fit in this.
TOTAL_S = 75
# The first attempt of a retracted command is over within milliseconds; its second comes after 5 s.
RETRACT_WITHIN_S = 10
# How long after a retracted command's next attempt would have come the receiver is still watched.
SILENCE_AFTER_DUE = timedelta(seconds=2)
WARM_UP_S = 30


class Unready(Exception):
    """The console answers, but its workers deliver nothing."""


@dataclass
class Tracked:
    """A command under way. `sent` and `answered` bracket the dispatch call."""

    scenario: Scenario
    command_id: str
    sent: datetime
    answered: datetime
    refusal: str | None
    command: dict[str, Any] = field(default_factory=dict)
    watched_until: datetime | None = None

    @property
    def state(self) -> str:
        return str(self.command.get("state", "dispatched"))

    @property
    def over(self) -> bool:
        if self.watched_until is not None and datetime.now(UTC) < self.watched_until:
            return False
        return self.state in SETTLED or (self.refusal is not None and bool(self.command))


@dataclass(frozen=True)
class Result:
    scenario: Scenario
    seen: Observation
    sent: datetime
    answered: datetime
    settled_after_deadline: timedelta | None

    @property
    def failures(self) -> list[str]:
        return unmet(self.scenario.expected, self.seen)


class Run:
    def __init__(
        self, console: Console, receiver: ReceiverLog, datasets: dict[str, str], progress: Progress
    ) -> None:
        self._console = console
        self._receiver = receiver
        self._datasets = datasets
        self._progress = progress

    def warm_up(self) -> None:
        """Wait until a command goes all the way, so that no figure measures the console's start."""
        tracked = self._start(WARM_UP)
        self._follow([tracked], until=time.monotonic() + WARM_UP_S)
        if not tracked.over:
            raise Unready(f"after {WARM_UP_S} s the first command is still {tracked.state}")

    def everything(self) -> list[Result]:
        until = time.monotonic() + TOTAL_S
        tracked = [self._start(scenario) for scenario in SCENARIOS]
        for each in tracked:
            if each.scenario.retract_while_waiting:
                self._retract_while_waiting(each)
        tracked += [self._start(scenario) for scenario in QUICK]
        self._follow(tracked, until)
        self._progress.clear()
        return [self._result(each) for each in tracked]

    def _start(self, scenario: Scenario) -> Tracked:
        self._progress.show(f"dispatching {scenario.name}")
        parameters: dict[str, object] = {"scenario": scenario.name, "altitudeM": 120}
        command_id = self._console.issue(
            self._datasets[scenario.dataset], "goto-waypoint", parameters
        )
        refusal = None
        sent = datetime.now(UTC)
        try:
            self._console.dispatch(command_id, scenario.ack_timeout_s)
        except Refused as refused:
            if refused.status != 409:
                raise
            refusal = refused.code
        return Tracked(scenario, command_id, sent, datetime.now(UTC), refusal)

    def _retract_while_waiting(self, tracked: Tracked) -> None:
        """Retract between the first attempt and the second: what `watched_until` then proves."""
        until = time.monotonic() + RETRACT_WITHIN_S
        while time.monotonic() < until:
            rows = self._console.attempts(tracked.command_id)
            if rows and rows[0]["finishedAt"] is not None:
                self._console.retract(tracked.command_id, "Withdrawn by the demo before its retry.")
                due = instant(rows[0]["nextAttemptAt"])
                tracked.watched_until = due + SILENCE_AFTER_DUE if due else None
                return
            time.sleep(0.1)

    def _follow(self, tracked: Sequence[Tracked], until: float) -> None:
        while (began := time.monotonic()) < until:
            waiting = [each for each in tracked if not each.over]
            if not waiting:
                return
            for each in waiting:
                self._refresh(each)
            self._progress.show(_summary(tracked))
            time.sleep(max(0.0, began + POLL_S - time.monotonic()))

    def _refresh(self, tracked: Tracked) -> None:
        before = _standing(tracked)
        tracked.command = self._console.command(tracked.command_id)
        if _standing(tracked) != before and tracked.scenario not in QUICK:
            self._progress.change(f"{tracked.scenario.name}: {_standing(tracked)}")

    def _result(self, tracked: Tracked) -> Result:
        # Asked once more, for what has ended must also stay so.
        self._refresh(tracked)
        command = tracked.command
        rows = self._console.attempts(tracked.command_id)
        seen = Observation(
            state=tracked.state,
            diagnosis=str(command["diagnosis"]["code"]),
            refusal=tracked.refusal,
            attempts=attempts_from_rows(rows, instant(command["dispatchedAt"])),
            posts=posts_from_log(self._receiver.posts(tracked.command_id)),
        )
        return Result(
            tracked.scenario, seen, tracked.sent, tracked.answered, _after_deadline(command)
        )


def _after_deadline(command: dict[str, Any]) -> timedelta | None:
    settled, deadline = instant(command["settledAt"]), instant(command["ackDeadline"])
    if command["state"] != "timed_out" or settled is None or deadline is None:
        return None
    return settled - deadline


def _standing(tracked: Tracked) -> str:
    attempts = tracked.command.get("attempts", 0)
    return f"{tracked.state}, {attempts} attempt{'' if attempts == 1 else 's'}"


def _summary(tracked: Sequence[Tracked]) -> str:
    waiting = [each for each in tracked if not each.over]
    names = "; ".join(f"{each.scenario.name} ({_standing(each)})" for each in waiting)
    return f"{len(tracked) - len(waiting)} of {len(tracked)} ended. Waiting for {names or 'none'}"
