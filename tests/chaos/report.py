"""The run as a table for people."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from tests.chaos.scenario import RECOVERY_S, Recovery, Result


def table(result: Result) -> str:
    """Faults with what they cost, the totals, and the zeros."""
    lines = [*_faults(result.recoveries), "", *_totals(result), "", *_zeros(result), ""]
    return "\n".join([*lines, _verdict(result)])


def _faults(recoveries: Sequence[Recovery]) -> Iterator[str]:
    yield f"{'fault':44} {'times':>5}   {'next delivery, s':>18}   {'all well, s':>18}"
    yield f"{'':44} {'':>5}   {'median':>9}{'worst':>9}   {'median':>9}{'worst':>9}"
    for name in dict.fromkeys(recovery.fault for recovery in recoveries):
        yield _row(name, [one for one in recoveries if one.fault == name])


def _row(name: str, recoveries: Sequence[Recovery]) -> str:
    ran = [one for one in recoveries if not one.not_run]
    if not ran:
        return f"{name:44} {0:5}   not run: {recoveries[0].not_run}"
    following = _span([one.next_delivery_s for one in ran])
    well = _span([one.well_s for one in ran])
    return f"{name:44} {len(ran):5}   {following}   {well}"


def _span(seconds: Sequence[float | None]) -> str:
    known = [RECOVERY_S if one is None else one for one in seconds]
    worst = "never" if None in seconds else f"{max(known):.1f}"
    return f"{statistics.median(known):9.1f}{worst:>9}"


def _totals(result: Result) -> Iterator[str]:
    ran = sum(not one.not_run for one in result.recoveries)
    yield f"{ran:7}  faults injected, of {result.planned} that were planned"
    yield f"{result.accepted:7}  deliveries accepted"
    yield f"{result.delivered:7}  delivered"
    yield f"{result.failed:7}  failed, as the policy says"
    yield f"{result.posts:7}  POSTs received"
    yield f"{result.lost_attempts:7}  attempts closed as lost"
    yield f"{result.quiet_after_s:7.0f}  seconds until quiet after the last fault"
    if result.stop_s:
        yield f"{result.stop_s:7.1f}  seconds to stop with work on the wire"


def _zeros(result: Result) -> Iterator[str]:
    yield "These must be nought:"
    yield from (f"{count:7}  {what}" for what, count in result.zeros.items())
    yield f"{result.still_waiting:7}  deliveries that had not ended in the end"
    late = sum(not recovery.in_time for recovery in result.recoveries)
    yield f"{late:7}  recoveries that took longer than {RECOVERY_S:.0f} s"


def _verdict(result: Result) -> str:
    if result.passed:
        return "Passed."
    if len(result.recoveries) < result.planned:
        return "NOT FINISHED: interrupted before the last fault."
    return "FAILED: see the numbers above that are not nought."
