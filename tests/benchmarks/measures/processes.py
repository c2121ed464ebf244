"""More worker processes, and more than one pool: how fast, and that no attempt is made twice."""

from __future__ import annotations

from collections import Counter
from statistics import median

from tests.benchmarks import comparing, load
from tests.benchmarks.figures import Figure, none_of
from tests.benchmarks.run import Run
from tests.benchmarks.stage import Wanted

ATTEMPTS = "SELECT count(*) FROM webhooks_attempt"


def measure(run: Run) -> list[Figure]:
    return _by_workers(run) + _two_pools(run)


def _by_workers(run: Run) -> list[Figure]:
    wanted = {
        f"{workers} worker{'s' * (workers > 1)}": Wanted(settings={"DELIVERY_WORKERS": workers})
        for workers in run.sizes.workers
    }
    if not wanted:
        return []
    with run.arenas(wanted) as arenas:
        rates = comparing.rates(run, arenas, "processes")
    first, *others = rates
    return [
        *(Figure(f"{name}: deliveries", median(of), "/s") for name, of in rates.items()),
        *(
            Figure(f"{name}: times {first}", comparing.ratio(rates[name], rates[first]))
            for name in others
        ),
    ]


def _two_pools(run: Run) -> list[Figure]:
    """Two hosts: the same command started twice on one database."""
    with run.arena(pools=2) as arena:
        run.progress.show("processes: two pools on one database")
        before = arena.value(ATTEMPTS)
        rate = load.burst(arena, arena.scene.healthy, run.sizes.burst).per_second
        recorded = arena.value(ATTEMPTS) - before
        posts = Counter((name, number) for name, number, _ in arena.receiver.arrivals())
    return [
        Figure("two pools on one database: deliveries", rate, "/s"),
        none_of("two pools: attempts that arrived twice", sum(posts.values()) - len(posts)),
        none_of("two pools: attempts recorded and not arrived", abs(recorded - len(posts))),
    ]
