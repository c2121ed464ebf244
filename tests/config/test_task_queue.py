"""django-q2 takes a misspelt setting for none: each of ours is one that it reads, and as it is meant."""

from __future__ import annotations

import inspect
import re

import pytest
from django.conf import settings
from django.utils.module_loading import import_string
from django_q import conf
from django_q.conf import Conf


def test_each_setting_is_one_that_django_q_reads() -> None:
    read = set(re.findall(r'conf\.get\(\s*"(\w+)"', inspect.getsource(conf)))

    assert {"retry", "timeout", "max_attempts"} <= read
    assert set(settings.Q_CLUSTER) <= read


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("broker_class", Conf.BROKER_CLASS),
        ("orm", Conf.ORM),
        ("workers", Conf.WORKERS),
        ("queue_limit", Conf.QUEUE_LIMIT),
        ("timeout", Conf.TIMEOUT),
        ("retry", Conf.RETRY),
        ("max_attempts", Conf.MAX_ATTEMPTS),
        ("ack_failures", Conf.ACK_FAILURES),
        ("scheduler", Conf.SCHEDULER),
        ("save_limit", Conf.SAVE_LIMIT),
        ("recycle", Conf.RECYCLE),
    ],
)
def test_a_setting_arrives_as_it_was_given(name: str, read: object) -> None:
    assert settings.Q_CLUSTER[name] == read


def test_what_decides_about_attempts_is_not_left_to_the_queue() -> None:
    """No schedule rows, which one broken row would stop; no more tasks waiting than there are workers."""
    assert Conf.SCHEDULER is False
    assert Conf.QUEUE_LIMIT <= Conf.WORKERS
    assert Conf.TIMEOUT < settings.LEASE_S
    assert Conf.TIMEOUT < Conf.RETRY


def test_each_tick_of_the_clock_is_a_function_that_there_is() -> None:
    """A misspelt one would fail in silence once a second, and what it sweeps would stay."""
    assert {task for task in settings.CLOCK_TICKS if not callable(import_string(task))} == set()
    assert all(0 < period <= 2 for period in settings.CLOCK_TICKS.values())
    assert {
        "commands.tasks.sweep_ack_deadlines",
        "webhooks.engine.tasks.sweep_leases",
        "webhooks.engine.heartbeat.probe",
        "organizations.tasks.send_notices",
    } <= set(settings.CLOCK_TICKS)
