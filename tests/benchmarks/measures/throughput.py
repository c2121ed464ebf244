"""Durable deliveries a second, against what bare posts reach at the same receiver in the same run.

A delivery is durable when it was claimed, guarded, signed, posted and recorded, and its command moved to
`delivered`, all committed and synced. Engine and bare posts take turns, so that a machine that slows
down slows both.
"""

from __future__ import annotations

import time
from statistics import median

from django.conf import settings

from tests.benchmarks import bare, fill, load, machine
from tests.benchmarks.bare import Order, Posted
from tests.benchmarks.figures import Figure, at_least
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


def measure(run: Run) -> list[Figure]:
    """Rounds in turns, then medians; a ratio is the median of the rounds' own ratios."""
    size = run.sizes.burst
    engine: list[float] = []
    costs: list[dict[str, float]] = []
    plain: dict[str, list[Posted]] = {"requests": [], "http.client": []}
    with run.arena() as arena:
        for number in range(1, run.sizes.rounds + 1):
            run.progress.show(f"throughput: round {number} of {run.sizes.rounds}")
            for kind, rounds in plain.items():
                rounds.append(bare.measure(_orders(arena, kind, size * BARE_POSTS)))
            batch = fill.queued(arena.connection, arena.scene, arena.scene.healthy, size)
            before = _spent(run, arena)
            engine.append(load.release(arena, batch).per_second)
            after = _spent(run, arena)
            costs.append({what: (after[what] - before[what]) / size for what in after})
            arena.receiver.reset()
    run.throughput = median(engine)
    return [
        Figure("durable deliveries", run.throughput, "/s"),
        *(Figure(f"bare {kind} posts", _rate(rounds), "/s") for kind, rounds in plain.items()),
        at_least("of bare requests sessions", _ratio(engine, plain["requests"]), "", 1.0),
        Figure("of a bare http.client loop", _ratio(engine, plain["http.client"])),
        *(
            Figure(f"CPU of a bare {kind} post", median(one.cpu_ms for one in rounds), "ms")
            for kind, rounds in plain.items()
        ),
        *(
            Figure(f"a delivery's {what}", median(cost[what] for cost in costs), unit)
            for what, unit in UNITS.items()
        ),
    ]


def _rate(rounds: list[Posted]) -> float:
    return median(one.per_second for one in rounds)


def _ratio(engine: list[float], plain: list[Posted]) -> float:
    return median(ours / bare.per_second for ours, bare in zip(engine, plain, strict=True))


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
