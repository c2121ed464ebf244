"""Which ends of a command its operator is told of, and what."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from commands import lifecycle, settling
from commands.errors import ReportRefused
from commands.models import Command
from commands.rules.reports import Outcome
from organizations.models import Notice
from tests.factories import Scene, answer, claim, fresh, no_answer, record
from webhooks import endpoints

pytestmark = pytest.mark.django_db


def told(command: Command) -> list[tuple[str, dict[str, Any]]]:
    """What the operator was told of the command, in order."""
    notices = Notice.objects.filter(subject_id=command.pk).order_by("pk")
    assert {notice.recipient_id for notice in notices} <= {command.issued_by_id}
    return [(notice.kind, notice.facts) for notice in notices]


def kinds(command: Command) -> list[str]:
    return [kind for kind, _ in told(command)]


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("logged", None),
        ("queued", None),
        ("delivered", None),
        ("acked", None),
        ("retracted", None),
        ("nacked", "command_nacked"),
        ("failed", "command_failed"),
        ("timed_out", "command_timed_out"),
    ],
)
def test_the_operator_is_told_of_ends_that_ask_for_him(
    scene: Scene, state: str, kind: str | None
) -> None:
    assert kinds(scene.in_state(state)) == ([kind] if kind else [])


def test_a_rejection_is_told_in_the_integrators_words(scene: Scene) -> None:
    command = scene.delivered(name="set_speed")
    detail = "Unsafe\r\nnow\u202e"
    lifecycle.acknowledge(scene.operator, command.pk, Outcome.REJECTION, detail)
    lifecycle.acknowledge(scene.operator, command.pk, Outcome.REJECTION, detail)
    [(kind, facts)] = told(command)
    assert kind == "command_nacked"
    assert facts == {
        "name": "set_speed",
        "token": command.client_token,
        "reason": "",
        "detail": "Unsafe now\N{REPLACEMENT CHARACTER}",
    }


def test_a_rejection_that_came_early_is_told_with_the_delivery(scene: Scene) -> None:
    command, attempt = scene.on_the_wire()
    lifecycle.acknowledge(scene.operator, command.pk, Outcome.REJECTION)
    assert told(command) == []
    record(answer(attempt, 200))
    assert kinds(command) == ["command_nacked"]


def test_a_timeout_that_a_late_report_brings_to_light_is_told_once(scene: Scene) -> None:
    command = scene.overdue()
    with pytest.raises(ReportRefused):
        lifecycle.acknowledge(scene.operator, command.pk, Outcome.SUCCESS)
    settling.time_out_overdue()
    assert kinds(command) == ["command_timed_out"]


def test_a_delivery_after_the_deadline_is_told_as_one(scene: Scene) -> None:
    command, attempt = scene.on_the_wire(ack_timeout_s=0)
    record(answer(attempt, 200))
    [(kind, facts)] = told(command)
    assert (kind, facts["reason"]) == ("command_timed_out", "delivered_after_deadline")


def test_commands_that_end_with_their_endpoint_are_told(scene: Scene) -> None:
    waiting = [scene.dispatched() for _ in range(3)]
    endpoints.disable(scene.owner, scene.endpoint.pk, "")
    for command in waiting:
        [(kind, facts)] = told(command)
        assert (kind, facts["reason"]) == ("command_failed", "endpoint_disabled")


def test_a_failure_while_an_attempt_follows_is_told_to_nobody(scene: Scene) -> None:
    command, attempt = scene.on_the_wire()
    record(no_answer(attempt, "timeout"))
    assert fresh(command).state == "queued"
    assert told(command) == []


def test_a_sweep_takes_the_same_queries_for_one_command_and_for_many(scene: Scene) -> None:
    def sweep(count: int) -> list[str]:
        for _ in range(count):
            scene.overdue()
        with CaptureQueriesContext(connection) as captured:
            assert settling.time_out_overdue() == count
        return [query["sql"].split(" ")[0] for query in captured.captured_queries]

    assert sweep(1) == sweep(12)
    assert Notice.objects.count() == 13


def test_a_name_that_is_no_json_is_told_all_the_same(scene: Scene) -> None:
    command = scene.failed(name='"\\u0000" \\ \u2028 🛰️')
    [(_, facts)] = told(command)
    assert json.loads(json.dumps(facts)) == facts
    assert "🛰️" in facts["name"]


def test_somebody_who_switched_it_off_is_not_told(scene: Scene) -> None:
    scene.operator.user.memberships.update(muted_notices=["command_failed"])
    assert kinds(scene.failed()) == []
    assert kinds(scene.in_state("nacked")) == ["command_nacked"]


def test_the_delivery_is_recorded_with_the_notice_or_not_at_all(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = scene.dispatched()
    refused = answer(claim(command), 400)
    monkeypatch.setattr("organizations.notices.outbox.TELL", "SELECT 1 / 0")
    with pytest.raises(Exception, match="division by zero"):
        record(refused)
    monkeypatch.undo()
    assert fresh(command).state == "queued"
    record(refused)
    assert kinds(command) == ["command_failed"]
