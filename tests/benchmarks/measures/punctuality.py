"""How late retries start at half of the throughput, and that none starts early.

About every fifth delivery of the stream gets 503 at its first attempt and is due again 5 s after it. The
receiver's own clock checks the engine's word: its gap between the two arrivals is never below 5 s.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from tests.benchmarks import load
from tests.benchmarks.figures import Figure, at_most, none_of, percentile
from tests.benchmarks.fill import Batch
from tests.benchmarks.receiver import FAILING_DIGITS
from tests.benchmarks.run import Run
from tests.benchmarks.stage import Arena
from webhooks.rules.policies import COMMAND

AIM_P99_MS = 250.0
WAIT_S = COMMAND.waits_s[1]
# A retry follows so many of the stream's deliveries; together they are half of the throughput.
RETRIED = len(FAILING_DIGITS) / 16
# After the stream: the last retries' wait, and time to be recorded.
AFTERWARDS_S = WAIT_S + 1.0

RETRIES = """
SELECT 'msg_' || replace(d.event_id::text, '-', ''), a.number, extract(epoch FROM a.due_at)::float8,
       extract(epoch FROM a.started_at)::float8
  FROM bench_row r JOIN webhooks_delivery d ON d.id = r.delivery
  JOIN webhooks_attempt a ON a.delivery_id = d.id
 WHERE r.batch = %s AND a.number > 1
"""


def measure(run: Run) -> list[Figure]:
    arena, rate = run.shared, run.half_of_throughput() / (1 + RETRIED)
    seconds = run.sizes.stream_s + WAIT_S
    run.progress.show(f"punctuality: {rate:.0f} new deliveries/s for {seconds:.0f} s")
    with load.stream(arena, arena.scene.flaky, rate, seconds) as batch:
        time.sleep(seconds)
    time.sleep(AFTERWARDS_S)
    load.settle(arena)
    figures = list(_figures(arena, batch))
    arena.receiver.reset()
    return figures


def _figures(arena: Arena, batch: Batch) -> Iterator[Figure]:
    retries = arena.connection.execute(RETRIES, [batch.number]).fetchall()
    lateness = [(started - due) * 1000 for _, _, due, started in retries]
    arrivals = {(name, number): at for name, number, at in arena.receiver.arrivals()}
    seen = [(arrivals[name, number] - due) * 1000 for name, number, due, _ in retries]
    yield Figure("retries", len(retries))
    yield Figure("lateness, p50", percentile(lateness, 0.5), "ms")
    yield at_most("lateness, p99", percentile(lateness, 0.99), "ms", AIM_P99_MS)
    yield Figure("lateness, most", max(lateness), "ms")
    yield Figure("first byte at the receiver after it was due, p99", percentile(seen, 0.99), "ms")
    yield none_of("retries that started early", sum(late < 0 for late in lateness))
    yield none_of("retries that arrived early by the receiver's clock", _early(arrivals))


def _early(arrivals: dict[tuple[str, int], float]) -> int:
    """Second attempts that arrived less than the wait after the first."""
    return sum(
        at - arrivals[name, number - 1] < WAIT_S
        for (name, number), at in arrivals.items()
        if (name, number - 1) in arrivals
    )
