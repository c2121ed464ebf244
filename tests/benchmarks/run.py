"""One run of the benchmarks: its sizes, and what the measures share."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.benchmarks import load
from tests.benchmarks.progress import Progress
from tests.benchmarks.stage import Arena, Stage, Wanted

# Deliveries before anything counts: connections are open, caches warm, plans made.
WARM_UP = 300


@dataclass(frozen=True)
class Sizes:
    """How much is measured. Counts are deliveries unless they say otherwise."""

    rounds: int = 3
    burst: int = 6_000
    idle_dispatches: int = 200
    loaded_dispatches: int = 250
    stream_s: float = 20.0
    dead_backlog: int = 5_000
    isolated_dispatches: int = 250
    history: tuple[int, ...] = (10_000, 100_000)
    waiting: int = 100_000
    compared_rounds: int = 3
    compared_burst: int = 4_000
    memory: int = 50_000
    flooded: int = 100
    workers: tuple[int, ...] = (1, 2, 4)


FULL = Sizes(history=(10_000, 100_000, 1_000_000))
# A look at each measure, in less than a minute on a quiet machine.
QUICK = Sizes(
    rounds=1,
    burst=1_000,
    idle_dispatches=30,
    loaded_dispatches=40,
    stream_s=2.0,
    isolated_dispatches=30,
    history=(5_000,),
    waiting=0,
    compared_rounds=1,
    compared_burst=800,
    memory=2_000,
    flooded=30,
    workers=(),
)


@dataclass
class Run:
    """What a measure gets."""

    stage: Stage
    sizes: Sizes
    progress: Progress
    # What is kept until the run ends.
    keeping: contextlib.ExitStack
    # Deliveries a second, once it is known.
    throughput: float | None = None

    @functools.cached_property
    def shared(self) -> Arena:
        """The arena of the measures that leave nothing behind but rows."""
        return self.keeping.enter_context(self.arena())

    @contextlib.contextmanager
    def arena(self, pools: int = 1) -> Iterator[Arena]:
        """An arena whose workers are warm."""
        with self.arenas({"": Wanted(pools)}) as arenas:
            yield arenas[""]

    @contextlib.contextmanager
    def arenas(self, wanted: Mapping[str, Wanted]) -> Iterator[dict[str, Arena]]:
        """Several of them, side by side."""
        with self.stage.arenas(wanted) as arenas:
            for arena in arenas.values():
                load.burst(arena, arena.scene.healthy, WARM_UP)
            self.stage.receiver.reset()
            yield arenas

    def half_of_throughput(self) -> float:
        """Deliveries a second that leave half of the engine free."""
        if self.throughput is None:
            self.progress.show("how fast is it at all?")
            arena = self.shared
            self.throughput = load.burst(arena, arena.scene.healthy, self.sizes.burst).per_second
            arena.receiver.reset()
        return self.throughput / 2
