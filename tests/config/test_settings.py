"""Settings are read at the start: what cannot work ends it with one reason, and never becomes a default."""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
import sys

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from config.settings import integer, networks, switch
from webhooks.rules import policies

RULE = {"kind": "attempts_in_a_row", "count": 20}


@pytest.mark.parametrize("text", ["", "0", "-1", "1001", "1e3", "4.0", "٤", "many", "9" * 30])
def test_a_number_out_of_its_range_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("SOME_NUMBER", text)

    with pytest.raises(ImproperlyConfigured, match=r"SOME_NUMBER .* from 1 to 1000"):
        integer("SOME_NUMBER", 8, 1, 1000)


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("1000", 1000), ("008", 8)])
def test_the_bounds_of_a_number_are_allowed(
    monkeypatch: pytest.MonkeyPatch, text: str, number: int
) -> None:
    monkeypatch.setenv("SOME_NUMBER", text)

    assert integer("SOME_NUMBER", 8, 1, 1000) == number


@pytest.mark.parametrize("text", ["", "yes", "true", "2", "-1", "on"])
def test_a_switch_is_1_or_0_and_nothing_else(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("SOME_SWITCH", text)

    with pytest.raises(ImproperlyConfigured, match="SOME_SWITCH must be 1 or 0"):
        switch("SOME_SWITCH")


@pytest.mark.parametrize("text", ["10.0.0.0/33", "10.0.0.1/8", "intranet", "fd00::/129"])
def test_what_is_no_network_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("SOME_NETWORKS", f"127.0.0.0/8,{text}")

    with pytest.raises(ImproperlyConfigured, match="SOME_NETWORKS must be a list of networks"):
        networks("SOME_NETWORKS")


def test_networks_are_listed_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_NETWORKS", "127.0.0.0/8, ::1/128,")

    assert [str(one) for one in networks("SOME_NETWORKS")] == ["127.0.0.0/8", "::1/128"]
    monkeypatch.delenv("SOME_NETWORKS")
    assert networks("SOME_NETWORKS") == tuple[ipaddress.IPv4Network]()


@pytest.mark.parametrize(
    ("terms", "reason"),
    [
        ({"waitsS": []}, "fast: waitsS is a list of 1 to 30 waits"),
        ({"waitsS": [0, 0]}, "fast: Each wait after the first is 1 to"),
        ({"waitsS": [0, -5]}, "fast: Each wait after the first is 1 to"),
        ({"waitsS": [0, 10**30]}, "fast: Each wait after the first is 1 to"),
        ({"disableRule": {**RULE, "count": 0}}, "fast: The count of disableRule is"),
    ],
)
def test_the_console_does_not_start_with_a_policy_that_cannot_work(
    terms: dict[str, object], reason: str
) -> None:
    policy = {"waitsS": [0, 5], "stopsOnRefusal": True, "disableRule": RULE, **terms}
    started = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=settings.BASE_DIR,
        env={**os.environ, "DELIVERY_POLICIES": json.dumps({"fast": policy})},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert started.returncode != 0
    assert f"DELIVERY_POLICIES: {reason}" in started.stderr.splitlines()[-1]


def test_an_attempt_takes_ten_seconds_at_most_whatever_its_policy() -> None:
    assert settings.ATTEMPT_DEADLINE_S == policies.ATTEMPT_TIMEOUT_S == 10
    with pytest.raises(policies.PolicyRefused, match="nothing else"):
        policies.from_terms("fast", {**policies.terms_of(policies.COMMAND), "timeoutS": 60})
