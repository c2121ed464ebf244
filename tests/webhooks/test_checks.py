"""Settings that contradict each other stop the start."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from django.conf import settings as configured
from django.core.checks import run_checks
from pytest_django import Settings


def errors() -> list[str]:
    return [message.id or "" for message in run_checks() if message.is_serious()]


def test_the_settings_as_they_are_can_work() -> None:
    assert errors() == []


@pytest.mark.parametrize(
    ("deadline", "task", "lease"),
    [
        (60, 20, 30),  # an attempt outlives its task
        (10, 12, 30),  # nothing is left to record it
        (10, 40, 30),  # a task outlives the lease
        (10, 30, 30),
    ],
)
def test_time_limits_out_of_order_are_refused(
    settings: Settings, deadline: int, task: int, lease: int
) -> None:
    settings.ATTEMPT_DEADLINE_S, settings.LEASE_S = deadline, lease
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, "timeout": task, "retry": task + 1}
    assert errors() == ["webhooks.E001"]


def test_a_retry_within_the_task_limit_is_refused(settings: Settings) -> None:
    settings.Q_CLUSTER = {**settings.Q_CLUSTER, "retry": settings.Q_CLUSTER["timeout"]}
    assert errors() == ["webhooks.E002"]


@pytest.mark.parametrize("key", ["", "short", "ä" * 44, "A" * 44])
def test_a_malformed_encryption_key_is_refused_without_being_shown(
    settings: Settings, key: str
) -> None:
    settings.SECRETS_ENCRYPTION_KEYS = [key, *settings.SECRETS_ENCRYPTION_KEYS]
    messages: list[Any] = [m for m in run_checks() if m.is_serious()]
    assert [m.id for m in messages] == ["webhooks.E003"]
    assert not key or key not in messages[0].msg


def test_an_unreadable_bundle_of_authorities_is_refused(settings: Settings) -> None:
    settings.ENDPOINT_CA_BUNDLE = "/nowhere/authorities.pem"
    assert errors() == ["webhooks.E004"]


def test_more_workers_than_the_embedded_database_has_connections_for_are_refused(
    settings: Settings,
) -> None:
    settings.EMBEDDED_DATABASE, settings.DELIVERY_WORKERS = True, 18
    assert errors() == ["webhooks.E005"]
    settings.DELIVERY_WORKERS = 17
    assert errors() == []


@pytest.mark.parametrize("command", ["cluster", "pool"])
def test_workers_do_not_start_with_settings_that_cannot_work(command: str) -> None:
    """One sentence at the start, not ten thousand attempts that fail."""
    started = subprocess.run(
        [sys.executable, "manage.py", command],
        cwd=configured.BASE_DIR,
        env={**os.environ, "ENDPOINT_CA_BUNDLE": "/nowhere/authorities.pem"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert started.returncode == 1
    assert "(webhooks.E004) ENDPOINT_CA_BUNDLE (/nowhere/authorities.pem)" in started.stderr
