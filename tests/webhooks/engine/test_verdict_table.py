"""The table of verdicts, row by row for each policy: by answers on sockets, by a double of requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import requests
import responses

from tests.receivers import ScriptedReceiver, Visit, respond
from tests.webhooks.engine.sending import sending
from tests.webhooks.engine.troubles import TROUBLES, made
from webhooks.rules.policies import PRESETS
from webhooks.rules.verdicts import ErrorKind

TABLE: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "data" / "vectors.json").read_text()
)["classification"]
# In the table an end is called `fail`, in the engine `failed`.
VERDICTS = {"delivered": "delivered", "retry": "retry", "fail": "failed"}
STATUSES = sorted({row["status"] for row in TABLE if "status" in row})
KINDS = sorted({row["error"] for row in TABLE if "error" in row})

URL = "https://receiver.example/hook"
DEADLINE_S = 0.4


def expected(policy: str, key: str, value: int | str) -> str:
    [row] = [row for row in TABLE if row["policy"] == policy and row.get(key) == value]
    return VERDICTS[row["verdict"]]


# --- by socket ----------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", PRESETS)
def test_each_status_on_the_wire_is_judged_as_in_the_table(policy: str) -> None:
    script = [respond(status, headers={"Location": "https://a.example/"}) for status in STATUSES]
    with ScriptedReceiver(*script) as receiver, sending() as sender:
        outcomes = [made(sender, policy, receiver.url) for _ in STATUSES]

    assert [(one.status_code, one.verdict) for one in outcomes] == [
        (status, expected(policy, "status", status)) for status in STATUSES
    ]
    assert len(receiver.requests) == len(STATUSES)


def test_each_kind_of_the_table_can_be_provoked() -> None:
    assert set(TROUBLES) == set(KINDS) == {kind.value for kind in ErrorKind}


@pytest.mark.parametrize("policy", PRESETS)
@pytest.mark.parametrize("kind", TROUBLES)
def test_each_trouble_on_the_wire_is_judged_as_in_the_table(
    policy: str, kind: str, tmp_path: Path
) -> None:
    with TROUBLES[kind](tmp_path) as url, sending(deadline_s=DEADLINE_S) as sender:
        outcome = made(sender, policy, url)

    assert (outcome.error_kind, outcome.status_code) == (kind, None)
    assert outcome.verdict == expected(policy, "error", kind)
    assert outcome.error


def test_an_answer_in_pieces_is_judged_once_it_is_whole() -> None:
    """What arrives is a stream: a status may come digit by digit."""

    def piecemeal(visit: Visit) -> None:
        for piece in (b"HTTP/1.1 5", b"0", b"3 Busy\r", b"\nContent-Length: 0\r\n\r", b"\n"):
            visit.send(piece)

    with ScriptedReceiver(piecemeal) as receiver, sending() as sender:
        outcome = made(sender, "command", receiver.url)

    assert (outcome.status_code, outcome.verdict) == (503, "retry")


# --- by a double of requests --------------------------------------------------------------------


@responses.activate
@pytest.mark.parametrize("policy", PRESETS)
def test_each_status_of_a_double_is_judged_as_in_the_table(policy: str) -> None:
    for status in STATUSES:
        responses.post(URL, status=status)
    with sending() as sender:
        outcomes = [made(sender, policy, URL) for _ in STATUSES]

    assert [(one.status_code, one.verdict) for one in outcomes] == [
        (status, expected(policy, "status", status)) for status in STATUSES
    ]


# What a double can raise: requests has fewer kinds of failure than there are on the wire.
RAISED = [
    (requests.ConnectTimeout(), "timeout"),
    (requests.ReadTimeout(), "timeout"),
    (requests.exceptions.SSLError(), "tls"),
    (requests.ConnectionError(), "connection_reset"),
]


@responses.activate
@pytest.mark.parametrize("policy", PRESETS)
@pytest.mark.parametrize(("error", "kind"), RAISED)
def test_each_failure_of_a_double_is_judged_as_in_the_table(
    policy: str, error: Exception, kind: str
) -> None:
    responses.post(URL, body=error)
    with sending() as sender:
        outcome = made(sender, policy, URL)

    assert (outcome.error_kind, outcome.status_code) == (kind, None)
    assert outcome.verdict == expected(policy, "error", kind)
