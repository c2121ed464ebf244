"""What is measured, in the order in which it runs. Each takes a ``Run`` and returns its figures."""

from __future__ import annotations

from collections.abc import Callable

from tests.benchmarks.figures import Figure
from tests.benchmarks.measures import (
    growth,
    isolation,
    latency,
    memory,
    processes,
    punctuality,
    throughput,
)
from tests.benchmarks.run import Run

MEASURES: dict[str, Callable[[Run], list[Figure]]] = {
    "throughput": throughput.measure,
    "latency": latency.measure,
    "punctuality": punctuality.measure,
    "isolation": isolation.measure,
    "growth": growth.measure,
    "memory": memory.measure,
    "processes": processes.measure,
}
