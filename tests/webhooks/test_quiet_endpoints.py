"""What a quiet endpoint costs among busy ones: its own attempts, not the others'."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from django.db import connection

from organizations.clock import database_now
from tests import factories
from tests.factories import Scene, record
from webhooks import watching
from webhooks.api import attempts
from webhooks.endpoints import health
from webhooks.engine import claims
from webhooks.models import Endpoint

# Attempts of another endpoint that are newer than all of the quiet one.
BUSY = 30_000
# Pages of the attempts' table and indexes: some for each of its own, and far from what BUSY fill.
FEW = 50

ATTEMPTS = """
INSERT INTO webhooks_attempt (delivery_id, endpoint_id, number, worker, due_at, claimed_at, started_at,
                              finished_at, duration_ms, verdict, status_code, phase, error_kind, error,
                              response_excerpt, excerpt_truncated, retry_after, location)
SELECT %s, %s, n, 'a worker of the past', now(), now(), now(), now(), 5, 'retry', 503, 'body', '', '',
       ''::bytea, false, '', ''
  FROM generate_series(2, %s) AS n
"""


@pytest.fixture
def quiet(scene: Scene) -> Endpoint:
    """An endpoint that answered once, before another's many attempts."""
    record(factories.answer(factories.claim(scene.send()), 200))
    busy = scene.another_endpoint()
    delivery = scene.send(busy)
    with connection.cursor() as cursor:
        cursor.execute(ATTEMPTS, [delivery.pk, busy.pk, BUSY])
        cursor.execute("ANALYZE webhooks_attempt, webhooks_delivery, webhooks_endpoint")
    return scene.endpoint


def pages_read(statement: str, parameters: Mapping[str, Any]) -> int:
    """How many pages the scans of attempts touch."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {statement}", parameters)
        plan = cursor.fetchone()[0][0]["Plan"]
    scans = [node for node in _nodes(plan) if node.get("Relation Name") == "webhooks_attempt"]
    assert scans
    return sum(int(node["Shared Hit Blocks"] + node["Shared Read Blocks"]) for node in scans)


def _nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    # What writes attempts is counted with all that it reads from.
    if node["Node Type"] != "ModifyTable":
        yield node
    for child in node.get("Plans", []):
        yield from _nodes(child)


def test_its_health_is_read_from_its_own_attempts(quiet: Endpoint) -> None:
    wanted = {"endpoints": [quiet.pk], "by_delivery": [False], "counts": [20]}

    assert pages_read(health.RECENT, wanted) < FEW


def test_its_figures_are_read_from_its_own_attempts(quiet: Endpoint) -> None:
    assert pages_read(health.FIGURES, {"endpoints": [quiet.pk], "sample": 100}) < FEW


def test_whether_it_fails_is_read_from_its_own_attempts(scene: Scene, quiet: Endpoint) -> None:
    wanted = {"organization": scene.organization.pk, "late": database_now(), "at_most": 10}

    assert pages_read(watching.SUSPECTS, wanted) < FEW


def test_the_api_lists_its_own_attempts_alone(scene: Scene, quiet: Endpoint) -> None:
    wanted = {
        "organization": scene.organization.pk,
        "endpoint": quiet.pk,
        "before": attempts.NO_LIMIT,
        "count": 50,
    }

    assert pages_read(attempts.NEWEST, wanted) < FEW


def test_a_claim_reads_only_its_last_answer(scene: Scene, quiet: Endpoint) -> None:
    scene.send(quiet)

    assert pages_read(claims.CLAIM, claims.parameters(64, factories.WORKER)) < FEW
