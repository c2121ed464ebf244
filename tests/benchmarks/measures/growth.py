"""Whether the record of the past, or a crowd that waits, makes the engine slower.

An empty database and a grown one take turns under the same load. Beside it the claim's plan: whether it
reads each growing table by an index, and how many pages that touches; an index grows by a level when
what it holds grows a hundredfold, and nothing else may grow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

from tests.benchmarks import comparing, fill
from tests.benchmarks.figures import Figure, at_least, at_most
from tests.benchmarks.plan import Plan, claim_plan
from tests.benchmarks.run import Run
from tests.benchmarks.stage import Arena, Wanted

# Flat within a fifth.
AIM_RATIO = 0.8
# A deeper index has a level more to go through.
AIM_PAGES_RATIO = 1.5
# Due at once at one endpoint, while the others have little.
BACKLOG = 5_000
EMPTY, GROWN = "empty", "grown"


@dataclass(frozen=True)
class Past:
    """What a database holds before the load comes."""

    name: str
    rows: Callable[[Run, Arena], None]


def measure(run: Run) -> list[Figure]:
    figures: list[Figure] = []
    plans: list[Plan] = []
    for past in _pasts(run):
        with run.arenas({EMPTY: Wanted(), GROWN: Wanted()}) as arenas:
            run.progress.show(f"growth: filling in {past.name}")
            past.rows(run, arenas[GROWN])
            for arena in arenas.values():
                fill.tidy(arena.connection)
            figures += _compared(run, past, arenas)
            plans += [claim_plan(arenas[GROWN]), claim_plan(arenas[GROWN], backlog=BACKLOG)]
            figures += _planned(past.name, plans[-2], plans[0])
            figures += _planned(f"{past.name}, {BACKLOG:,} due at one", plans[-1], plans[0])
    return figures


def _pasts(run: Run) -> list[Past]:
    pasts = [Past(f"{size:,} recorded", _recorded(size)) for size in run.sizes.history]
    if run.sizes.waiting:
        pasts.append(Past(f"{run.sizes.waiting:,} waiting", _waiting))
    return pasts


def _recorded(size: int) -> Callable[[Run, Arena], None]:
    def rows(run: Run, arena: Arena) -> None:
        with run.stage.superuser(arena) as sql:
            fill.acknowledged(sql, arena.scene, arena.scene.healthy, size)

    return rows


def _waiting(run: Run, arena: Arena) -> None:
    with run.stage.superuser(arena) as sql:
        fill.waiting(sql, arena.scene, arena.scene.healthy, run.sizes.waiting)


def _compared(run: Run, past: Past, arenas: dict[str, Arena]) -> list[Figure]:
    rates = comparing.rates(run, arenas, f"growth, {past.name}")
    ratio = comparing.ratio(rates[GROWN], rates[EMPTY])
    return [
        Figure(f"{past.name}: deliveries", median(rates[GROWN]), "/s"),
        Figure(f"{past.name}: the empty one beside it", median(rates[EMPTY]), "/s"),
        at_least(f"{past.name}: of the empty one", ratio, "", AIM_RATIO),
    ]


def _planned(name: str, plan: Plan, smallest: Plan) -> list[Figure]:
    times = plan.pages / smallest.pages
    return [
        Figure(f"{name}: pages that a claim reads", plan.pages),
        at_most(f"{name}: times the fewest pages", times, "", AIM_PAGES_RATIO),
        at_most(f"{name}: tables that a claim reads whole", len(plan.read_as_a_whole), "", 0),
    ]
