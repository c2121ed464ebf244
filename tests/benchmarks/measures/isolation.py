"""Whether dead endpoints delay the healthy ones.

Healthy endpoints get dispatches alone, then beside a backlog at an endpoint that never answers and at
twenty more that do not answer either. All of it happens before the rule of their policy disables the
dead ones, which would end the trouble: their first twenty attempts take 30 s.
"""

from __future__ import annotations

import time

from tests.benchmarks import fill
from tests.benchmarks.dispatching import Dispatched, api_of, dispatch
from tests.benchmarks.figures import Figure, at_most, percentile
from tests.benchmarks.run import Run
from tests.benchmarks.stage import Arena

PER_SECOND = 15.0
# Deliveries at each of the other dead endpoints: more than may be in flight there at once.
BACKLOG_OF_OTHERS = 50
# Until every slot that dead endpoints can take is taken.
TAKEN_S = 1.5
AIM_RATIO = 2.0

# So that the pool can end: nothing more hangs.
BURY = """
UPDATE webhooks_endpoint SET enabled = false, disabled_at = now(), disabled_reason = 'measured'
 WHERE id = ANY(%s)
"""


def measure(run: Run) -> list[Figure]:
    count = run.sizes.isolated_dispatches
    with run.arena() as arena, api_of(run.stage, arena) as api:
        healthy = arena.scene.healthy
        run.progress.show("isolation: the healthy ones alone")
        alone = dispatch(api, arena, healthy, count, PER_SECOND)
        run.progress.show("isolation: beside dead endpoints")
        _strand(arena, run.sizes.dead_backlog)
        time.sleep(TAKEN_S)
        hanging = arena.value(
            "SELECT count(*) FROM webhooks_delivery WHERE lease_until IS NOT NULL"
        )
        beside = dispatch(api, arena, healthy, count, PER_SECOND)
        arena.connection.execute(BURY, [[dead.endpoint for dead in arena.scene.dead]])
        arena.receiver.release()
        arena.receiver.reset()
    before, after = _p99(alone), _p99(beside)
    return [
        Figure("attempts that hang", hanging),
        Figure("healthy alone: call made to first byte, p99", before, "ms"),
        Figure("healthy beside dead ones: call made to first byte, p99", after, "ms"),
        at_most("times as long beside dead endpoints", after / before, "", AIM_RATIO),
    ]


def _strand(arena: Arena, backlog: int) -> None:
    """Make deliveries due at endpoints that never answer."""
    first, *others = arena.scene.dead
    batches = [
        fill.queued(arena.connection, arena.scene, [first], backlog),
        fill.queued(arena.connection, arena.scene, others, BACKLOG_OF_OTHERS * len(others)),
    ]
    for batch in batches:
        fill.make_due(arena.connection, batch)


def _p99(dispatched: list[Dispatched]) -> float:
    return percentile([one.after_call_ms for one in dispatched], 0.99)
