"""``manage.py simulate``: what would happen, and what receivers and the database would see of it.

Nothing is sent and no database is asked: the engine's decisions are played against a virtual clock, under
the limits that the settings have now.
"""

from __future__ import annotations

import json
from argparse import ArgumentTypeError
from collections import Counter
from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from webhooks.endpoints import switching
from webhooks.engine import pump, tasks
from webhooks.policies import POLICIES
from webhooks.rules import scenarios, simulation
from webhooks.rules.policies import Policy, RuleKind
from webhooks.rules.scenarios import ATTEMPT_DEADLINE_MS, Reply, Scenario
from webhooks.rules.simulation import Made, Simulated
from webhooks.rules.verdicts import ErrorKind

# More would play for minutes, and says nothing that fewer do not say.
MOST_DELIVERIES = 10_000_000
MOST_ENDPOINTS = 1000
Row = tuple[str, ...]


def count(least: int, most: int) -> Any:
    """An argument that is a whole number within these bounds."""

    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or not least <= int(text) <= most:
            raise ArgumentTypeError(f"a whole number from {least} to {most}")
        return int(text)

    return parse


def answer(text: str) -> int | str:
    """An argument that is a status or a kind of error."""
    if text.isascii() and text.isdigit() and 200 <= int(text) <= 599:
        return int(text)
    if text in list(ErrorKind):
        return text
    raise ArgumentTypeError(f"a status from 200 to 599, or one of {', '.join(ErrorKind)}")


class Command(BaseCommand):
    help = "Play deliveries against a virtual clock and say what would happen. Nothing is sent."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--policy", choices=sorted(POLICIES), default="command")
        parser.add_argument("--deliveries", type=count(1, MOST_DELIVERIES), default=1)
        parser.add_argument(
            "--per-second", type=count(1, MOST_DELIVERIES), help="as they come; else all at once"
        )
        parser.add_argument("--endpoints", type=count(1, MOST_ENDPOINTS), default=1)
        parser.add_argument("--down-for", type=count(0, 100 * 86_400), default=0, metavar="SECONDS")
        parser.add_argument(
            "--down-answer", type=answer, default=503, help="a status or a kind of error; 503"
        )
        parser.add_argument("--latency-ms", type=count(0, 60_000), default=50)
        parser.add_argument(
            "--no-limits", action="store_true", help="whatever is due starts at once"
        )
        parser.add_argument(
            "--keep-enabled", action="store_true", help="no rule disables the endpoints"
        )
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        scenario = _scenario(options)
        result = simulation.simulate(scenario)
        if options["json"]:
            self.stdout.write(json.dumps(_facts(scenario, result), indent=2))
        else:
            self.stdout.write("\n".join(_page(options, scenario, result)))


def _scenario(options: dict[str, Any]) -> Scenario:
    deliveries, per_second = options["deliveries"], options["per_second"]
    arrivals = scenarios.at_once(deliveries)
    if per_second:
        arrivals = list(scenarios.at_rate(deliveries, per_second))
    up = Reply(options["latency_ms"])
    return Scenario(
        policy=POLICIES[options["policy"]],
        arrivals=arrivals,
        receiver=scenarios.down_until(options["down_for"] * 1000, _down(options), up),
        endpoints=options["endpoints"],
        limits=scenarios.Limits() if options["no_limits"] else _limits(),
        batches=scenarios.Batches(
            claim=settings.SENDER_THREADS,
            record=pump.BATCH,
            end=switching.STEP,
            ends_a_sweep=tasks.STRANDED_STEPS,
        ),
        disables=not options["keep_enabled"],
        followed=1,
    )


def _down(options: dict[str, Any]) -> Reply:
    """How it answers while it is down. A timeout takes the whole deadline, whatever the latency."""
    kind = options["down_answer"]
    if isinstance(kind, int):
        return Reply(options["latency_ms"], kind)
    slow = kind == ErrorKind.TIMEOUT
    return Reply(ATTEMPT_DEADLINE_MS if slow else options["latency_ms"], None, kind)


def _limits() -> scenarios.Limits:
    return scenarios.Limits(
        per_endpoint=settings.ENDPOINT_MAX_IN_FLIGHT,
        unproven=settings.ENDPOINT_UNPROVEN_IN_FLIGHT,
        total=settings.DELIVERY_WORKERS * settings.SENDER_THREADS,
    )


# --- as data ------------------------------------------------------------------------------------


def _facts(scenario: Scenario, result: Simulated) -> dict[str, Any]:
    return {
        "policy": scenario.policy.name,
        "deliveries": sum(arrival.count for arrival in scenario.arrivals),
        "endpoints": scenario.endpoints,
        "delivered": result.delivered,
        "failed": {reason.value: number for reason, number in sorted(result.failed.items())},
        "skipped": result.skipped,
        "endpointsDisabled": len(result.disabled_ms),
        "firstDisabledMs": min(result.disabled_ms, default=None),
        "endedMs": result.ended_ms,
        "attempts": result.attempts,
        "attemptsByNumber": [
            {"number": planned.attempt, "accumulatedS": planned.accumulated_s, "made": made}
            for planned in scenario.policy.planned
            if (made := result.attempts_by_number[planned.attempt])
        ],
        "peakInFlight": result.peak_in_flight,
        "peakOverdue": result.peak_overdue,
        "latestStartMs": result.most_late_ms,
        "posts": _busiest(result.posts),
        "statements": _busiest(result.statements),
        "rows": _busiest(result.rows),
        "firstDelivery": [_attempt(made) for made in _first(result)],
    }


def _busiest(by_second: Counter[int]) -> dict[str, int]:
    """All of them, the most in one second, and the first second that had so many."""
    peak = max(by_second.values(), default=0)
    at_s = min((second for second, number in by_second.items() if number == peak), default=0)
    return {"total": by_second.total(), "peakPerSecond": peak, "peakAtS": at_s}


def _first(result: Simulated) -> tuple[Made, ...]:
    return result.stories[0].attempts if result.stories else ()


def _attempt(made: Made) -> dict[str, Any]:
    return {
        "number": made.number,
        "dueMs": made.due_ms,
        "startedMs": made.started_ms,
        "finishedMs": made.finished_ms,
        "verdict": made.verdict.value,
    }


# --- for people ---------------------------------------------------------------------------------


def _page(options: dict[str, Any], scenario: Scenario, result: Simulated) -> list[str]:
    facts = _facts(scenario, result)
    return [
        *_asked(options, scenario),
        *_section("What becomes of them", _outcomes(facts)),
        *_section("Receiver and database", _loads(facts)),
        *_section("Attempts", _numbers(facts)),
        *_section("The first delivery", _timeline(facts)),
    ]


def _asked(options: dict[str, Any], scenario: Scenario) -> list[str]:
    rate = f"{options['per_second']:,} a second" if options["per_second"] else "all at once"
    where = "1 endpoint" if scenario.endpoints == 1 else f"{scenario.endpoints:,} endpoints"
    down = f"Down for {_span(options['down_for'] * 1000)} ({options['down_answer']}), then 200"
    limits = scenario.limits
    room = (
        f"At most {limits.per_endpoint:,} in flight at an endpoint ({limits.unproven:,} until it"
        f" answers), {limits.total:,} in all."
    )
    return [
        f"{_deliveries(options['deliveries'])} by policy {scenario.policy.name}, {rate}, {where}.",
        f"{down if options['down_for'] else '200'} after {options['latency_ms']} ms.",
        "Whatever is due starts at once." if options["no_limits"] else room,
        _rule(scenario.policy) if scenario.disables else "No rule disables an endpoint.",
    ]


def _deliveries(number: int) -> str:
    return "1 delivery" if number == 1 else f"{number:,} deliveries"


def _rule(policy: Policy) -> str:
    rule = policy.disable_rule
    by_attempt = rule.kind is RuleKind.ATTEMPTS_IN_A_ROW
    what = "failed attempts" if by_attempt else "failed deliveries"
    return f"{rule.count} {what} in a row disable an endpoint."


def _outcomes(facts: dict[str, Any]) -> Iterable[Row]:
    yield "delivered", f"{facts['delivered']:,}"
    for reason, number in facts["failed"].items():
        yield f"failed: {reason}", f"{number:,}"
    if facts["skipped"]:
        yield "not made: endpoint disabled", f"{facts['skipped']:,}"
    if facts["endpointsDisabled"]:
        first = _span(facts["firstDisabledMs"])
        yield "endpoints disabled", f"{facts['endpointsDisabled']:,}", f"first after {first}"
    yield "all has ended after", _span(facts["endedMs"])


def _loads(facts: dict[str, Any]) -> Iterable[Row]:
    yield "", "total", "most in a second", "at second"
    for name, key in (
        ("POSTs = attempt rows inserted", "posts"),
        ("statements", "statements"),
        ("rows written", "rows"),
    ):
        yield name, *(f"{facts[key][of]:,}" for of in ("total", "peakPerSecond", "peakAtS"))
    yield "in flight, at most", f"{facts['peakInFlight']:,}"
    yield "due and waiting for room, at most", f"{facts['peakOverdue']:,}"
    yield "latest start after its time", _span(facts["latestStartMs"])


def _numbers(facts: dict[str, Any]) -> Iterable[Row]:
    yield "number", "made", "s after the first, by schedule"
    for line in facts["attemptsByNumber"]:
        yield str(line["number"]), f"{line['made']:,}", f"{line['accumulatedS']:,}"


def _timeline(facts: dict[str, Any]) -> Iterable[Row]:
    yield "number", "due, s", "starts, s", "ends, s", "verdict"
    for made in facts["firstDelivery"]:
        moments = (f"{made[key] / 1000:,.3f}" for key in ("dueMs", "startedMs", "finishedMs"))
        yield str(made["number"]), *moments, made["verdict"]


def _section(title: str, rows: Iterable[Row]) -> list[str]:
    """Rows as aligned columns: the first and words to the left, numbers to the right."""
    lines = list(rows)
    columns = max(len(row) for row in lines)
    widths = [max(len(row[i]) for row in lines if i < len(row)) for i in range(columns)]
    text = [
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
        for row in lines
    ]
    return ["", title, *(f"  {line}" for line in text)]


def _span(ms: int) -> str:
    """A duration in the words of the contract: 34 h 7 min 30 s."""
    minutes, rest = divmod(ms, 60_000)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{hours} h"] * bool(hours) + [f"{minutes} min"] * bool(minutes)
    return " ".join(parts + [f"{rest / 1000:g} s"] * bool(rest or not parts))
