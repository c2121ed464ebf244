"""Durable deliveries a second, against what bare posts reach at the same receiver in the same run.

A delivery is durable when it was claimed, guarded, signed, posted and recorded, and its command moved to
`delivered`, all committed and synced. Engine and bare posts take turns, so that a machine that slows
down slows both.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from statistics import median

from django.conf import settings

from tests.benchmarks import bare, fill, load, machine
from tests.benchmarks.bare import Order, Posted
from tests.benchmarks.figures import Figure
from tests.benchmarks.run import Run
from tests.benchmarks.stage import Arena
from webhooks.rules import signing

BODY = "SELECT convert_from(body, 'UTF8') FROM webhooks_event LIMIT 1"
WAL_KB = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') / 1024"
# Sessions report with a delay of a second at most.
TRANSACTIONS = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
UNITS = {
    "CPU in the pool": "ms",
    "CPU in PostgreSQL": "ms",
    "CPU in the receiver": "ms",
    "log of PostgreSQL": "KB",
    "transactions": "",
}
# Bare posts are faster, and their rounds should last about as long.
BARE_POSTS = 2


@dataclass(frozen=True)
class Round:
    """The engine and the bare posts, one after the other."""

    engine: float  # deliveries a second
    plain: dict[str, Posted]
    cost: dict[str, float]  # of one delivery

    def ratio(self, kind: str) -> float:
        return self.engine / self.plain[kind].per_second


def measure(run: Run) -> list[Figure]:
    """Rounds in turns, then medians; a ratio is the median of the rounds' own ratios."""
    rounds = []
    for number in range(1, run.sizes.rounds + 1):
        run.progress.show(f"throughput: round {number} of {run.sizes.rounds}")
        rounds.append(_round(run, run.shared))
    run.throughput = median(one.engine for one in rounds)
    alone = load.burst(run.shared, run.shared.scene.healthy[:1], run.sizes.burst // 4)
    run.shared.receiver.reset()
    return [
        Figure("durable deliveries", run.throughput, "/s"),
        *_beside(rounds, "requests", "bare requests sessions", 1.0),
        *_beside(rounds, "http.client", "a bare http.client loop", None),
        Figure("durable deliveries to one endpoint alone", alone.per_second, "/s"),
        *(
            Figure(f"a delivery's {what}", median(one.cost[what] for one in rounds), unit)
            for what, unit in UNITS.items()
        ),
    ]


def _round(run: Run, arena: Arena) -> Round:
    size = run.sizes.burst
    plain = {kind: bare.measure(_orders(arena, kind, size * BARE_POSTS)) for kind in bare.POSTERS}
    batch = fill.queued(arena.connection, arena.scene, arena.scene.healthy, size)
    before = _spent(run, arena)
    engine = load.release(arena, batch).per_second
    after = _spent(run, arena)
    arena.receiver.reset()
    return Round(engine, plain, {what: (after[what] - before[what]) / size for what in after})


def _beside(rounds: list[Round], kind: str, name: str, aim: float | None) -> list[Figure]:
    plain = [one.plain[kind] for one in rounds]
    ratio = median(one.ratio(kind) for one in rounds)
    return [
        Figure(f"{name}: posts", median(one.per_second for one in plain), "/s"),
        Figure(f"{name}: CPU of a post", median(one.cpu_ms for one in plain), "ms"),
        Figure(f"the engine, of {name}", ratio, "", aim, from_below=True),
    ]


def _spent(run: Run, arena: Arena) -> dict[str, float]:
    """What the machine has spent until now."""
    pids = (
        arena.cluster_pids,
        run.stage.postgres_pids,
        [run.stage.receiver.process.pid],
    )
    cpu_ms = (machine.cpu_seconds(of) * 1000 for of in pids)
    database = (arena.value(WAL_KB), arena.value(TRANSACTIONS))
    return dict(zip(UNITS, (*cpu_ms, *database), strict=True))


def _orders(arena: Arena, kind: str, posts: int) -> list[Order]:
    """As many processes and threads as the engine has, the same bytes and headers."""
    row = arena.connection.execute(BODY).fetchone()
    assert row
    order = Order(
        kind=kind,
        url=f"{arena.receiver.url}/ok",
        headers=_headers(row[0].encode()),
        body=row[0],
        threads=settings.SENDER_THREADS,
        posts=posts // settings.DELIVERY_WORKERS,
    )
    return [order] * settings.DELIVERY_WORKERS


def _headers(body: bytes) -> dict[str, str]:
    return {
        "User-Agent": "command-console",
        "Accept-Encoding": "identity",
        "Content-Type": "application/json",
        **signing.signature_headers(
            message_id=f"msg_{'0' * 32}",
            timestamp=int(time.time()),
            body=body,
            secrets=[signing.new_secret()],
            event_type="command.dispatch",
            attempt=1,
        ),
    }
