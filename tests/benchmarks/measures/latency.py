"""From a dispatch over the API to the first byte at the receiver, idle and at half of the throughput."""

from __future__ import annotations

from tests.benchmarks import load
from tests.benchmarks.dispatching import Dispatched, api_of, dispatch
from tests.benchmarks.figures import Figure, at_most, percentile
from tests.benchmarks.run import Run

# One at a time: far more apart than a delivery takes, and few beside half of the throughput.
PER_SECOND = 20.0
AIM_P50_MS = 15.0
AIM_P99_MS = 100.0
# The stream is under way before the first dispatch, and outlasts the last.
LEAD_S = 1.0


def measure(run: Run) -> list[Figure]:
    arena, half = run.shared, run.half_of_throughput()
    healthy = arena.scene.healthy
    with api_of(run.stage, arena) as api:
        run.progress.show("latency: idle")
        idle = dispatch(api, arena, healthy, run.sizes.idle_dispatches, PER_SECOND)
        run.progress.show(f"latency: beside {half:.0f} deliveries/s")
        count = run.sizes.loaded_dispatches
        with load.stream(arena, healthy, half, 2 * count / PER_SECOND + LEAD_S):
            loaded = dispatch(api, arena, healthy, count, PER_SECOND)
        load.settle(arena)
        arena.receiver.reset()
    return [
        *_figures("idle", idle),
        Figure("load beside the dispatches", half, "/s"),
        *_figures("loaded", loaded),
    ]


def _figures(when: str, dispatched: list[Dispatched]) -> list[Figure]:
    returned = [one.after_return_ms for one in dispatched]
    called = [one.after_call_ms for one in dispatched]
    return [
        at_most(
            f"{when}: call returned to first byte, p50", percentile(returned, 0.5), "ms", AIM_P50_MS
        ),
        at_most(
            f"{when}: call returned to first byte, p99",
            percentile(returned, 0.99),
            "ms",
            AIM_P99_MS,
        ),
        Figure(f"{when}: call made to first byte, p50", percentile(called, 0.5), "ms"),
        Figure(f"{when}: call made to first byte, p99", percentile(called, 0.99), "ms"),
    ]
