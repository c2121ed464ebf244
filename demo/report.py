"""The demo's table, its figures and its verdict, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median

from demo.expectations import MAX_LATENESS_MS, AttemptSeen, Observation, retries
from demo.run import Result
from demo.scenarios import QUICK

Row = tuple[str, ...]
HEADINGS: Row = ("command", "expected", "state", "attempts (lateness)", "diagnosis", "")


def table(results: Sequence[Result]) -> str:
    quick = [result for result in results if result.scenario in QUICK]
    rows = [_row(result) for result in results if result.scenario not in QUICK]
    return _aligned([HEADINGS, *rows, *([_quick_row(quick)] if quick else [])])


def figures(results: Sequence[Result]) -> str:
    """Latencies of first attempts and lateness of retries, in milliseconds.

    From the dispatch's answer a latency may be below 0: the POST can be there before it.
    """
    after_sent, after_answer = [], []
    for result in results:
        if result.seen.posts:
            first_byte = result.seen.posts[0].arrived
            after_sent.append((first_byte - result.sent).total_seconds() * 1000)
            after_answer.append((first_byte - result.answered).total_seconds() * 1000)
    lines = [
        f"dispatch sent     -> first byte at the receiver: {_spread(after_sent)}",
        f"dispatch answered -> first byte at the receiver: {_spread(after_answer)}",
        _retry_figure([late for result in results for late in _retry_lateness(result)]),
    ]
    lines += [
        f"{result.scenario.name} timed out "
        f"{result.settled_after_deadline.total_seconds() * 1000:.0f} ms after its deadline"
        for result in results
        if result.settled_after_deadline is not None
    ]
    return "\n".join(lines)


def verdict(results: Sequence[Result]) -> str:
    failures = [
        f"  {result.scenario.name}: {failure}" for result in results for failure in result.failures
    ]
    if not failures:
        return f"All {len(results)} commands ended as they must."
    return "\n".join(["These expectations failed:", *failures])


def _row(result: Result) -> Row:
    expected, seen = result.scenario.expected, result.seen
    return (
        result.scenario.name,
        expected.state,
        seen.state,
        ", ".join(map(_attempt, seen.attempts)) or _no_attempt(seen),
        seen.diagnosis,
        _mark(bool(result.failures)),
    )


def _no_attempt(seen: Observation) -> str:
    return f"none: {seen.refusal}" if seen.refusal else "none"


def _quick_row(results: Sequence[Result]) -> Row:
    attempts = [attempt for result in results for attempt in result.seen.attempts]
    lateness = [late for attempt in attempts if (late := attempt.lateness_ms) is not None]
    return (
        f"{len(results)} quick commands",
        QUICK[0].expected.state,
        _counted(result.seen.state for result in results),
        f"{_counted(each.outcome for each in attempts)} (to {max(lateness, default=0):+.0f} ms)",
        _counted(result.seen.diagnosis for result in results),
        _mark(any(result.failures for result in results)),
    )


def _counted(values: Iterable[object]) -> str:
    return ", ".join(f"{times} x {value}" for value, times in Counter(values).items())


def _attempt(attempt: AttemptSeen) -> str:
    late = attempt.lateness_ms
    return f"{attempt.outcome} ({'?' if late is None else f'{late:+.0f} ms'})"


def _mark(failed: bool) -> str:
    return "NOT AS EXPECTED" if failed else "ok"


def _aligned(rows: Sequence[Row]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([lines[0], "-" * max(map(len, lines)), *lines[1:]])


def _spread(milliseconds: Sequence[float]) -> str:
    if not milliseconds:
        return "nothing arrived"
    middle, most = median(milliseconds), max(milliseconds)
    return f"median {middle:.1f} ms, max {most:.1f} ms, {len(milliseconds)} commands"


def _retry_lateness(result: Result) -> list[float]:
    return [
        late
        for attempt in retries(result.seen.attempts)
        if (late := attempt.lateness_ms) is not None
    ]


def _retry_figure(lateness: Sequence[float]) -> str:
    if not lateness:
        return "retries: none"
    early = sum(late < 0 for late in lateness)
    return (
        f"{len(lateness)} retries: latest {max(lateness):.1f} ms after its time "
        f"(at most {MAX_LATENESS_MS}), {early or 'none'} early"
    )
