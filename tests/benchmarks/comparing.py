"""Bursts in arenas that take turns, so that only what differs between the arenas tells."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from tests.benchmarks import load
from tests.benchmarks.run import Run
from tests.benchmarks.stage import Arena


def rates(run: Run, arenas: Mapping[str, Arena], what: str) -> dict[str, list[float]]:
    """Deliveries a second of each arena, round by round."""
    found: dict[str, list[float]] = {name: [] for name in arenas}
    for number in range(1, run.sizes.compared_rounds + 1):
        for name, arena in arenas.items():
            run.progress.show(f"{what}: {name}, round {number} of {run.sizes.compared_rounds}")
            burst = load.burst(arena, arena.scene.healthy, run.sizes.compared_burst)
            found[name].append(burst.per_second)
            arena.receiver.reset()
    return found


def ratio(these: list[float], those: list[float]) -> float:
    """The median of the rounds' own ratios."""
    return median(one / other for one, other in zip(these, those, strict=True))
