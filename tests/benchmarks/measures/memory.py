"""Whether the pool's memory stays flat: over many deliveries, and when receivers answer a gigabyte."""

from __future__ import annotations

from tests.benchmarks import fill, load, machine
from tests.benchmarks.figures import Figure, at_most
from tests.benchmarks.run import Run
from tests.benchmarks.stage import Arena

# Deliveries first, so that threads, connections and the allocator have what they keep.
WARM_UP = 3_000
CHUNK = 10_000
# Flat: a leak of a hundred bytes a delivery in each worker would show as twice that over 50,000.
AIM_GROWTH_MB = 10.0


def measure(run: Run) -> list[Figure]:
    arena = run.shared
    load.burst(arena, arena.scene.healthy, min(WARM_UP, run.sizes.memory))
    before = _resident(arena)
    for done in range(0, run.sizes.memory, CHUNK):
        run.progress.show(f"memory: {done:,} of {run.sizes.memory:,} deliveries")
        load.burst(arena, arena.scene.healthy, min(CHUNK, run.sizes.memory - done))
        arena.receiver.reset()
    after = _resident(arena)
    run.progress.show(f"memory: {run.sizes.flooded} answers of a gigabyte")
    flooded = _most_while_flooded(run, arena)
    return [
        Figure("processes of the pool", len(before)),
        Figure("resident before, all", sum(before.values()), "MB"),
        Figure("resident before, the largest", max(before.values()), "MB"),
        at_most(
            f"growth of the largest over {run.sizes.memory:,} deliveries",
            _growth(before, after),
            "MB",
            AIM_GROWTH_MB,
        ),
        at_most(
            f"growth of the largest over {run.sizes.flooded} answers of a gigabyte",
            _growth(after, flooded),
            "MB",
            AIM_GROWTH_MB,
        ),
    ]


def _resident(arena: Arena) -> dict[int, float]:
    return {pid: machine.resident_mb(pid) for pid in arena.cluster_pids}


def _growth(before: dict[int, float], after: dict[int, float]) -> float:
    return max(after[pid] - before[pid] for pid in before.keys() & after.keys())


def _most_while_flooded(run: Run, arena: Arena) -> dict[int, float]:
    """The most that each process held while gigabytes were poured at it."""
    batch = fill.queued(arena.connection, arena.scene, arena.scene.flooding, run.sizes.flooded)
    most = _resident(arena)
    fill.make_due(arena.connection, batch)
    while load.is_busy(arena):
        most = {pid: max(most.get(pid, 0), now) for pid, now in _resident(arena).items()}
    return most
