"""What the engine would do, played against a virtual clock: days of retries in a moment.

The decisions are the real ones (``policies``, ``verdicts``, ``health``); only the clock, the receivers and
the database are imagined. An attempt starts at its time or when there is room, lasts as long as its
receiver takes, at most the ten seconds of the contract, and is recorded at once. Claiming and recording
take no time here, and no worker dies.

**Cohorts.** A million deliveries are not a million objects. Deliveries of one endpoint that came at the
same moment have the same story, so one cohort stands for all of them: a count, the number of their next
attempt and when it is due. A cohort splits where there is room for only some of it, and what starts at one
moment with the same number flies on as one. So the work grows with the moments at which something
happens: 13 for a million deliveries that all may start at once, and one for each round of attempts where
in-flight limits let only so many start. Stories are kept for a few deliveries only, the ``followed``
ones, which never merge into others.

Times are whole milliseconds of virtual time from 0.
"""

from __future__ import annotations

import heapq
import itertools
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Final, NamedTuple

from webhooks.rules import health
from webhooks.rules.policies import RuleKind
from webhooks.rules.scenarios import Arrival, Limits, Reply, Scenario
from webhooks.rules.verdicts import (
    Delivered,
    Failed,
    FailureReason,
    Next,
    Verdict,
    Waiting,
    what_follows,
)

# What the engine asks of PostgreSQL. A claim: its turn, then one statement that updates a delivery and
# inserts an attempt for each row. A recording: lock the deliveries, close the attempts, move the
# deliveries; with failures in it also take a turn at their endpoints and lock them, and read which are
# enabled and their outcomes. Disabling: the endpoint, and what waits there, so many in a step: each finds
# and ends them.
CLAIM_STATEMENTS: Final = 2
RECORD_STATEMENTS: Final = 3
JUDGE_STATEMENTS: Final = 4
DISABLE_STATEMENTS: Final = 2
# Between two sweeps of what waits at disabled endpoints.
SWEEP_MS: Final = 1000
ROWS_PER_CLAIMED: Final = 2
ROWS_PER_RECORDED: Final = 2

_START: Final = datetime(2000, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)


# --- what comes out -----------------------------------------------------------------------------


class Made(NamedTuple):
    """One attempt of a followed delivery."""

    number: int
    due_ms: int
    started_ms: int
    finished_ms: int
    verdict: Verdict


@dataclass(frozen=True)
class Story:
    """What became of ``count`` followed deliveries with the same attempts; ``reason`` None: delivered."""

    count: int
    attempts: tuple[Made, ...]
    ended_ms: int
    reason: FailureReason | None


@dataclass
class Simulated:
    """What happened; the counters are by second of virtual time.

    ``skipped`` never were deliveries: their endpoint was disabled before they came.
    """

    delivered: int = 0
    failed: Counter[FailureReason] = field(default_factory=Counter)
    skipped: int = 0
    attempts_by_number: Counter[int] = field(default_factory=Counter)
    posts: Counter[int] = field(default_factory=Counter)
    statements: Counter[int] = field(default_factory=Counter)
    rows: Counter[int] = field(default_factory=Counter)
    disabled_ms: list[int] = field(default_factory=list)
    peak_in_flight: int = 0
    peak_overdue: int = 0
    most_late_ms: int = 0
    ended_ms: int = 0
    stories: list[Story] = field(default_factory=list)

    @property
    def attempts(self) -> int:
        return self.attempts_by_number.total()

    def settle(self, cohort: _Cohort, at_ms: int, reason: FailureReason | None) -> None:
        if reason is None:
            self.delivered += cohort.size
        else:
            self.failed[reason] += cohort.size
        self.ended_ms = max(self.ended_ms, at_ms)
        if cohort.story is not None:
            self.stories.append(Story(cohort.size, cohort.story, at_ms, reason))

    def ask(self, at_ms: int, statements: int, rows: int) -> None:
        """The database runs these."""
        self.statements[at_ms // 1000] += statements
        self.rows[at_ms // 1000] += rows


# --- how it is played ---------------------------------------------------------------------------


class _Cohort(NamedTuple):
    """Deliveries that wait for attempt ``number``, or are in it; ``story`` None: nobody follows them."""

    size: int
    number: int
    due_ms: int
    story: tuple[Made, ...] | None

    def of_size(self, size: int) -> _Cohort:
        return _Cohort(size, self.number, self.due_ms, self.story)


class _Flight(NamedTuple):
    """An attempt on the wire."""

    started_ms: int
    reply: Reply


@dataclass
class _Endpoint:
    ready: deque[_Cohort] = field(default_factory=deque)  # due, in the order of their due times
    overdue: int = 0
    in_flight: int = 0
    answered: bool = False
    last_started_ms: int = 0
    disabled_ms: int | None = None
    outcomes: list[tuple[int, bool]] = field(default_factory=list)  # the newest start first

    def wanted(self, limits: Limits) -> int:
        """How many of its due deliveries may start now."""
        limit = limits.per_endpoint if self.answered else min(limits.per_endpoint, limits.unproven)
        return max(min(self.overdue, limit - self.in_flight), 0)

    @property
    def turn(self) -> tuple[int, int, int]:
        return self.in_flight, self.ready[0].due_ms, -self.overdue

    def take(self, count: int) -> Iterator[_Cohort]:
        """Start the first ``count`` of those that are due."""
        self.in_flight += count
        return self.drop(count)

    def drop(self, count: int) -> Iterator[_Cohort]:
        """The first ``count`` of those that are due; a cohort that does not fit is split."""
        self.overdue -= count
        while count:
            cohort = self.ready.popleft()
            if cohort.size > count:
                self.ready.appendleft(cohort.of_size(cohort.size - count))
                cohort = cohort.of_size(count)
            count -= cohort.size
            yield cohort

    def landed(self, count: int, flight: _Flight) -> None:
        self.in_flight -= count
        if flight.started_ms >= self.last_started_ms:
            self.last_started_ms = flight.started_ms
            self.answered = flight.reply.status is not None

    def note(self, count: int, started_ms: int, success: bool, most: int) -> None:
        """Keep the ``most`` outcomes that started last, the newest first."""
        new = [(started_ms, success)] * min(count, most)
        self.outcomes = sorted(new + self.outcomes, key=itemgetter(0), reverse=True)[:most]


class _Play:
    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._policy = scenario.policy
        self._endpoints = [_Endpoint() for _ in range(scenario.endpoints)]
        self._agenda: list[tuple[int, int, int, _Cohort, _Flight | None]] = []
        self._order = itertools.count()
        self._free = scenario.limits.total
        self.result = Simulated()
        for arrival in scenario.arrivals:
            self._arrive(arrival)

    def _arrive(self, arrival: Arrival) -> None:
        share, rest = divmod(arrival.count, len(self._endpoints))
        first = not self._agenda
        for index in range(len(self._endpoints)):
            count = share + (index < rest)
            followed = min(self._scenario.followed, count) if first and index == 0 else 0
            self._plan(arrival.at_ms, index, _Cohort(followed, 1, arrival.at_ms, ()))
            self._plan(arrival.at_ms, index, _Cohort(count - followed, 1, arrival.at_ms, None))

    def _plan(self, at_ms: int, index: int, cohort: _Cohort, flight: _Flight | None = None) -> None:
        if cohort.size:
            heapq.heappush(self._agenda, (at_ms, next(self._order), index, cohort, flight))

    def run(self) -> Simulated:
        """Go from moment to moment: record what ended, let come what is due, start what fits."""
        while self._agenda:
            now = self._agenda[0][0]
            ended: list[tuple[int, _Cohort, _Flight]] = []
            due = False
            while self._agenda and self._agenda[0][0] == now:
                _, _, index, cohort, flight = heapq.heappop(self._agenda)
                if flight is None:
                    due |= self._come_due(index, cohort)
                else:
                    ended.append((index, cohort, flight))
            if ended:
                self._record(now, ended)
            if ended or due:
                self._claim(now)
        return self.result

    def _come_due(self, index: int, cohort: _Cohort) -> bool:
        """Whether the cohort waits for its start now; at a disabled endpoint it waits no more."""
        endpoint = self._endpoints[index]
        if endpoint.disabled_ms is None:
            endpoint.ready.append(cohort)
            endpoint.overdue += cohort.size
            return True
        if cohort.number == 1:
            self.result.skipped += cohort.size
        else:
            # It has ended when the endpoint was disabled; here that is found out when it comes due.
            self._end_disabled(endpoint.disabled_ms, cohort)
        return False

    def _end_disabled(self, at_ms: int, cohort: _Cohort) -> None:
        self.result.ask(at_ms, 0, cohort.size)
        self.result.settle(cohort, at_ms, FailureReason.ENDPOINT_DISABLED)

    # -- start --

    def _claim(self, now: int) -> None:
        shares = self._shares()
        started = sum(shares.values())
        for index, count in shares.items():
            self._start(now, index, count)
        claims = max(_batches(started, self._scenario.batches.claim), 1)
        self.result.ask(now, claims * CLAIM_STATEMENTS, started * ROWS_PER_CLAIMED)
        self._free -= started
        in_flight = self._scenario.limits.total - self._free
        self.result.peak_in_flight = max(self.result.peak_in_flight, in_flight)
        overdue = sum(endpoint.overdue for endpoint in self._endpoints)
        self.result.peak_overdue = max(self.result.peak_overdue, overdue)

    def _shares(self) -> dict[int, int]:
        """How many attempts each endpoint may start: whoever has fewer in flight comes first, then who
        has waited longest, then who has more that waits.
        """
        limits = self._scenario.limits
        wanted = {i: n for i, e in enumerate(self._endpoints) if (n := e.wanted(limits))}
        if sum(wanted.values()) <= self._free:
            return wanted
        shares: Counter[int] = Counter()
        turns = [(*self._endpoints[index].turn, index) for index in wanted]
        heapq.heapify(turns)
        for _ in range(self._free):
            in_flight, due_ms, backlog, index = turns[0]
            shares[index] += 1
            if shares[index] < wanted[index]:
                heapq.heapreplace(turns, (in_flight + 1, due_ms, backlog, index))
            else:
                heapq.heappop(turns)
        return shares

    def _start(self, now: int, index: int, count: int) -> None:
        flight = _Flight(now, self._scenario.receiver(now).within_deadline())
        lands = now + flight.reply.latency_ms
        together: dict[int, int] = {}
        for cohort in self._endpoints[index].take(count):
            self.result.attempts_by_number[cohort.number] += cohort.size
            self.result.most_late_ms = max(self.result.most_late_ms, now - cohort.due_ms)
            if cohort.story is None:
                together[cohort.number] = together.get(cohort.number, 0) + cohort.size
            else:
                self._plan(lands, index, cohort, flight)
        for number, several in together.items():
            self._plan(lands, index, _Cohort(several, number, now, None), flight)
        self.result.posts[now // 1000] += count

    # -- record --

    def _record(self, now: int, ended: list[tuple[int, _Cohort, _Flight]]) -> None:
        failing = {
            index for index, cohort, flight in ended if not self._land(now, index, cohort, flight)
        }
        count = sum(cohort.size for _, cohort, _ in ended)
        self._free += count
        batches = _batches(count, self._scenario.batches.record)
        each = RECORD_STATEMENTS + (JUDGE_STATEMENTS if failing else 0)
        self.result.ask(now, batches * each, count * ROWS_PER_RECORDED)
        if self._scenario.disables:
            for index in sorted(failing):
                self._judge(now, self._endpoints[index])

    def _land(self, now: int, index: int, cohort: _Cohort, flight: _Flight) -> bool:
        """Record one cohort's attempt; whether it delivered."""
        endpoint, verdict = self._endpoints[index], flight.reply.verdict(self._policy)
        endpoint.landed(cohort.size, flight)
        if cohort.story is not None:
            made = Made(cohort.number, cohort.due_ms, flight.started_ms, now, verdict)
            cohort = cohort._replace(story=(*cohort.story, made))
        enabled = endpoint.disabled_ms is None
        following = what_follows(self._policy, cohort.number, verdict, _moment(now), enabled)
        self._move(now, index, cohort, following)
        delivered = verdict is Verdict.DELIVERED
        if self._counts_for_rule(following):
            most = self._policy.disable_rule.count
            endpoint.note(cohort.size, flight.started_ms, delivered, most)
        return delivered

    def _counts_for_rule(self, following: Next) -> bool:
        if not self._scenario.disables:
            return False
        by_attempt = self._policy.disable_rule.kind is RuleKind.ATTEMPTS_IN_A_ROW
        return by_attempt or not isinstance(following, Waiting)

    def _move(self, now: int, index: int, cohort: _Cohort, following: Next) -> None:
        match following:
            case Waiting(next_attempt_at):
                due_ms = (next_attempt_at - _START) // _MS
                waiting = _Cohort(cohort.size, cohort.number + 1, due_ms, cohort.story)
                self._plan(due_ms, index, waiting)
            case Delivered():
                self.result.settle(cohort, now, None)
            case Failed(reason):
                self.result.settle(cohort, now, reason)

    def _judge(self, now: int, endpoint: _Endpoint) -> None:
        successes = [success for _, success in endpoint.outcomes]
        judged = health.judge(self._policy.disable_rule, successes)
        if endpoint.disabled_ms is not None or not judged.failed_too_often:
            return
        endpoint.disabled_ms = now
        self.result.disabled_ms.append(now)
        self.result.ask(now, 0, 1)
        self._end_backlog(now, endpoint)

    def _end_backlog(self, now: int, endpoint: _Endpoint) -> None:
        """A first step together with the disabling, the rest by the sweeps that follow."""
        batches = self._scenario.batches
        steps = 1
        while True:
            count = min(endpoint.overdue, steps * batches.end)
            for cohort in endpoint.drop(count):
                self._end_disabled(now, cohort)
            self.result.ask(now, max(_batches(count, batches.end), 1) * DISABLE_STATEMENTS, 0)
            if not endpoint.overdue:
                return
            now, steps = now + SWEEP_MS, batches.ends_a_sweep


def _moment(at_ms: int) -> datetime:
    return _START + at_ms * _MS


def _batches(rows: int, most: int) -> int:
    return -(-rows // most)


def simulate(scenario: Scenario) -> Simulated:
    """Play it to the end, when no delivery waits and none is in flight."""
    return _Play(scenario).run()
