"""What owners are told of an endpoint that was disabled."""

from __future__ import annotations

import pytest

from organizations.models import Notice
from tests.factories import Scene, answer, claim, fail_with, no_answer, record
from webhooks import endpoints
from webhooks.models import Endpoint

pytestmark = pytest.mark.django_db


def exhausted(scene: Scene, said: bytes) -> Endpoint:
    """An endpoint whose fifth delivery in a row has failed."""
    endpoint = scene.another_endpoint("event", name="Gateway")
    for _ in range(4):
        fail_with(scene.send(endpoint), [500, 500, 500])
    delivery = scene.send(endpoint)
    fail_with(delivery, [500])
    record(no_answer(claim(delivery), "timeout"))
    scene.send(endpoint)
    record(answer(claim(delivery), 503, response_excerpt=said))
    return endpoint


def test_owners_are_told_why_and_what_it_answered_last(scene: Scene) -> None:
    endpoint = exhausted(scene, b"<b>over\nloaded</b>")
    notice = Notice.objects.get(kind="endpoint_disabled")
    endpoint.refresh_from_db()
    assert not endpoint.enabled
    assert notice.recipient == scene.owner.user
    assert notice.subject_id == endpoint.pk
    assert notice.facts["name"] == "Gateway"
    assert notice.facts["reason"] == "failed_5_times_in_a_row"
    assert notice.facts["ended"] == 1
    last, before, _ = notice.facts["errors"]
    assert (last["words"], last["said"]) == ("It answered 503.", "<b>over loaded</b>")
    assert before["words"] == "timeout."


def test_disabling_by_hand_is_told_in_the_owners_words(scene: Scene) -> None:
    endpoints.disable(scene.owner, scene.endpoint.pk, "Receiver is moving")
    endpoints.disable(scene.owner, scene.endpoint.pk, "Again")
    [notice] = Notice.objects.all()
    assert notice.facts["reason"] == "Receiver is moving"
    assert notice.facts["errors"] == []


def test_disabled_again_is_told_again(scene: Scene) -> None:
    for _ in range(2):
        endpoints.disable(scene.owner, scene.endpoint.pk, "")
        endpoints.enable(scene.owner, scene.endpoint.pk)
    assert Notice.objects.count() == 2


def test_a_long_answer_of_any_bytes_is_quoted_short(scene: Scene) -> None:
    exhausted(scene, b"\xff\xfe\x00\xed\xa0\x80" + b"x" * 10_000)
    [error, *_] = Notice.objects.get(kind="endpoint_disabled").facts["errors"]
    assert len(error["said"]) == 120


def test_an_endpoint_that_was_archived_is_told_to_nobody(scene: Scene) -> None:
    endpoints.archive(scene.owner, scene.another_endpoint().pk)
    assert not Notice.objects.exists()
