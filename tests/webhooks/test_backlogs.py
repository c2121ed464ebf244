"""An endpoint with a long backlog is disabled at once, and its backlog ends in steps."""

from __future__ import annotations

import pytest

from commands.models import Command
from commands.rules.states import State
from tests.factories import Scene
from webhooks import endpoints
from webhooks.endpoints import switching
from webhooks.engine import claims, tasks
from webhooks.models import Delivery

STEP = 3
BACKLOG = 8


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(switching, "STEP", STEP)


@pytest.fixture
def backlog(scene: Scene) -> list[Command]:
    return [scene.dispatched() for _ in range(BACKLOG)]


def waiting() -> int:
    return Delivery.objects.filter(next_attempt_at__isnull=False).count()


def failed() -> int:
    return Command.objects.filter(state=State.FAILED, failure_reason="endpoint_disabled").count()


def test_disabling_ends_one_step_and_starts_no_attempt_of_the_rest(
    scene: Scene, backlog: list[Command]
) -> None:
    endpoints.disable(scene.owner, scene.endpoint.pk, "")
    assert (failed(), waiting()) == (STEP, BACKLOG - STEP)
    assert claims.claim(100, "worker") == []


def test_the_sweep_ends_the_rest(scene: Scene, backlog: list[Command]) -> None:
    endpoints.disable(scene.owner, scene.endpoint.pk, "")
    tasks.sweep_leases()
    assert (failed(), waiting()) == (BACKLOG, 0)


def test_no_old_command_fires_when_the_endpoint_is_enabled_before_the_sweep(
    scene: Scene, backlog: list[Command]
) -> None:
    endpoints.disable(scene.owner, scene.endpoint.pk, "")
    endpoints.enable(scene.owner, scene.endpoint.pk)
    assert (failed(), waiting()) == (BACKLOG, 0)
    new = scene.dispatched()
    [claimed] = claims.claim(100, "worker")
    assert claimed.delivery_id == new.delivery_id
