"""How PostgreSQL goes about the claim."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.benchmarks import fill
from tests.benchmarks.stage import Arena

# The claim that is looked at: as a worker with all of its threads free makes it, with twice as much due.
LIMIT = 32
DUE = 64
# These grow with what is recorded; organizations' endpoints and their secrets do not.
GROWING = ("webhooks_delivery", "webhooks_attempt", "webhooks_event", "commands_command")


@dataclass(frozen=True)
class Plan:
    """``pages``: how many the scans of growing tables touch, in memory or not."""

    pages: int
    read_as_a_whole: list[str]


def claim_plan(arena: Arena, backlog: int = 0) -> Plan:
    """Explain one claim, with so many deliveries due at one endpoint beside it, and undo it."""
    from webhooks.engine import claims  # which reads the settings, and they the stage's environment

    sql, scene = arena.connection, arena.scene
    due = [fill.queued(sql, scene, scene.healthy, DUE)]
    if backlog:
        due.append(fill.queued(sql, scene, scene.dead[:1], backlog))
    explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {claims.CLAIM}".encode()
    with sql.transaction(force_rollback=True):
        for batch in due:
            sql.execute(fill.DUE, {"batch": batch.number, "first": 0, "end": batch.size})
        row = sql.execute(explain, claims.parameters(LIMIT, "the benchmarks")).fetchone()
    assert row
    scans = [scan for scan in _scans(row[0][0]["Plan"]) if scan["Relation Name"] in GROWING]
    return Plan(
        pages=sum(scan["Shared Hit Blocks"] + scan["Shared Read Blocks"] for scan in scans),
        read_as_a_whole=[s["Relation Name"] for s in scans if s["Node Type"] == "Seq Scan"],
    )


def _scans(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The nodes that read a table; what is below one (a bitmap's index) is counted in it."""
    if "Relation Name" in node and node["Node Type"] != "ModifyTable":
        yield node
        return
    for child in node.get("Plans", []):
        yield from _scans(child)
