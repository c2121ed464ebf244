"""The list as a file: what stands in it, in what form, and how it is read."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from commands import lifecycle
from commands.console import export
from commands.queries import Filters
from commands.rules.states import State
from organizations.clock import rfc3339
from organizations.models import AuditEntry
from organizations.patience import TookTooLong
from tests.factories import Scene, fresh, new_scene
from tests.visitors import Visitor

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]


def exported(scene: Scene, query: str = "") -> bytes:
    answer = Visitor(scene.viewer).client.post(f"/commands/export/{query}")
    assert answer.status_code == 200
    return b"".join(answer.streaming_content)  # type: ignore[attr-defined]


def table(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))


def test_a_row_says_what_the_list_says_in_utc(scene: Scene) -> None:
    command = scene.delivered(token="dock-7", name="dock")
    lifecycle.retract(scene.operator, command.pk, "Wrong bay, sorry")
    command = fresh(command)
    [row] = table(exported(scene))
    assert command.dispatched_at
    assert command.delivered_at
    assert command.ack_deadline
    assert command.settled_at
    assert command.retracted_at
    assert row == {
        **dict.fromkeys(export.COLUMNS, ""),
        "id": str(command.pk),
        "clientToken": "dock-7",
        "name": "dock",
        "state": "retracted",
        "experiment": scene.experiment.name,
        "dataset": scene.dataset.name,
        "endpoint": scene.endpoint.name,
        "issuedBy": scene.operator.user.email,
        "issuedAt": rfc3339(command.issued_at),
        "dispatchedAt": rfc3339(command.dispatched_at),
        "attempts": "1",
        "deliveredAt": rfc3339(command.delivered_at),
        "ackDeadline": rfc3339(command.ack_deadline),
        "settledAt": rfc3339(command.settled_at),
        "retractedBy": scene.operator.user.email,
        "retractedAt": rfc3339(command.retracted_at),
        "retractionReason": "Wrong bay, sorry",
    }


@pytest.mark.parametrize(
    "begun",
    ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1", '=HYPERLINK("http://e")'],
)
def test_what_a_spreadsheet_would_calculate_becomes_text(scene: Scene, begun: str) -> None:
    scene.issued(token=begun, name=f"{begun},b")
    [row] = table(exported(scene))
    assert (row["clientToken"], row["name"]) == (f"'{begun}", f"'{begun},b")


def test_other_text_is_kept_as_it_is(scene: Scene) -> None:
    name = 'say "no", in\ntwo lines; é 日本 🚀 a=b'
    scene.issued(token="plain", name=name)
    [row] = table(exported(scene))
    assert row["name"] == name


def test_the_file_is_csv_as_standardized(scene: Scene) -> None:
    scene.issued(name='a "quoted" one')
    content = exported(scene)
    assert content.startswith(b"\xef\xbb\xbfid,clientToken,name,")
    assert content.count(b"\r\n") == 2
    assert content.endswith(b"\r\n")
    assert b',"a ""quoted"" one",' in content


def test_it_comes_as_a_file_named_by_its_time(scene: Scene) -> None:
    answer = Visitor(scene.viewer).client.post("/commands/export/")
    named = answer.headers["Content-Disposition"]
    assert re.fullmatch(r'attachment; filename="commands-\d{8}T\d{6}Z\.csv"', named)
    assert answer.headers["Content-Type"].startswith("text/csv; charset=utf-8")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    answer.close()


def test_an_empty_list_is_a_head_without_rows(scene: Scene) -> None:
    assert table(exported(scene)) == []
    assert exported(scene).count(b"\r\n") == 1


def test_the_filters_hold_and_the_page_does_not(scene: Scene) -> None:
    for state in State:
        scene.in_state(state)
    acked = table(exported(scene, f"?state=acked&endpoint={scene.endpoint.pk}"))
    assert [row["state"] for row in acked] == ["acked"]
    everything = table(exported(scene, f"?before={acked[0]['id']}"))
    assert {row["state"] for row in everything} == {state.value for state in State}


def test_nothing_of_another_organization_is_exported(scene: Scene) -> None:
    theirs = new_scene("Elsewhere")
    theirs.dispatched()
    assert table(exported(scene, f"?endpoint={theirs.endpoint.pk}")) == []
    assert table(exported(scene)) == []


def test_it_is_read_batch_by_batch_without_gap_or_repetition(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = [scene.issued() for _ in range(7)]
    monkeypatch.setattr(export, "BATCH", 3)
    with CaptureQueriesContext(connection) as captured:
        pieces = list(export.lines(scene.organization, Filters()))
    assert [piece.count(b"\r\n") for piece in pieces] == [4, 3, 1]
    assert len(captured) == 3
    ids = [row["id"] for row in table(b"".join(pieces))]
    assert ids == [str(command.pk) for command in reversed(commands)]


def test_no_more_is_held_than_one_batch(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many rows there are: the next batch is read when the one before was taken."""
    for _ in range(6):
        scene.issued()
    monkeypatch.setattr(export, "BATCH", 2)
    pieces = export.lines(scene.organization, Filters())
    for _ in range(3):
        with CaptureQueriesContext(connection) as captured:
            next(pieces)
        assert len(captured) == 1
    pieces.close()  # type: ignore[attr-defined]


def test_what_arrives_meanwhile_is_not_part_of_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = [scene.issued() for _ in range(3)]
    monkeypatch.setattr(export, "BATCH", 2)
    pieces = export.lines(scene.organization, Filters())
    first = next(pieces)
    scene.issued()
    ids = [row["id"] for row in table(first + b"".join(pieces))]
    assert ids == [str(command.pk) for command in reversed(commands)]


def test_only_a_few_are_written_at_once(scene: Scene) -> None:
    visitor = Visitor(scene.viewer)
    scene.issued()

    def begun() -> Iterator[bytes]:
        pieces = export.lines(scene.organization, Filters())
        next(pieces)
        return pieces

    under_way: list[Any] = [begun() for _ in range(export.AT_ONCE)]
    refused = visitor.post("/commands/export/?state=logged")
    assert refused.status == 429
    assert 'href="/commands/?state=logged"' in refused.html
    # Somebody closes the browser.
    under_way.pop().close()
    assert len(table(exported(scene))) == 1
    under_way.pop().close()


def test_a_search_that_walks_too_long_is_answered_with_a_page(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise TookTooLong

    monkeypatch.setattr(export, "_batches", never)
    shown = Visitor(scene.viewer).post("/commands/export/?state=acked")
    assert "This would take too long to find" in shown.text
    assert "<html" in shown.html
    monkeypatch.undo()
    assert table(exported(scene)) == []


def test_an_export_stands_in_the_audit_trail(scene: Scene) -> None:
    exported(scene, "?state=acked&q=dock&before=")
    entry = AuditEntry.objects.get(act="commands.export")
    assert entry.user == scene.viewer.user
    assert entry.target_id == str(scene.organization.pk)
    assert entry.after == {"filters": {"state": "acked", "q": "dock"}}


def test_nothing_is_exported_by_following_a_link(scene: Scene) -> None:
    """As after signing in again, when the session had expired at the click."""
    assert (
        Visitor(scene.viewer).get("/commands/export/", state="acked").to == "/commands/?state=acked"
    )
    assert not AuditEntry.objects.filter(act="commands.export").exists()
