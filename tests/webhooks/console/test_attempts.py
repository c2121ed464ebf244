"""An endpoint's attempts on its page: what each says, and what narrows them."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from organizations import paging
from tests.factories import Scene, answer, claim, ending, lost, no_answer, record
from tests.visitors import Page, Visitor, queries_of
from tests.webhooks.console.test_endpoints import page_of
from webhooks.console.attempts import came_of
from webhooks.models import Attempt
from webhooks.rules.verdicts import Verdict

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("plain_static")]


@pytest.fixture
def busy(scene: Scene) -> dict[str, int]:
    """Attempts of every outcome at the endpoint, by what they came to."""
    delivery = scene.send()
    ends: list[int | str] = [503, "timeout", "lost", 200]
    for end in ends:
        record(ending(claim(delivery), end))
    refused = scene.send()
    record(answer(claim(refused), 404))
    found = [*delivery.attempt_rows.order_by("number"), *refused.attempt_rows.all()]
    return {str(end): attempt.pk for end, attempt in zip([*ends, 404], found, strict=True)}


def shown(page: Page, busy: dict[str, int]) -> set[str]:
    return {end for end, pk in busy.items() if page.has(f"a-{pk}")}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({}, {"503", "timeout", "lost", "200", "404"}),
        ({"outcome": "delivered"}, {"200"}),
        ({"outcome": "retry"}, {"503", "timeout"}),
        ({"outcome": "failed"}, {"404"}),
        ({"outcome": "lost"}, {"lost"}),
        ({"answer": "5xx"}, {"503"}),
        ({"answer": "4xx"}, {"404"}),
        ({"answer": "timeout"}, {"timeout"}),
        ({"outcome": "retry", "answer": "5xx"}, {"503"}),
        ({"outcome": "lost", "answer": "5xx"}, set()),
    ],
)
def test_attempts_are_narrowed_by_what_came_of_them(
    scene: Scene, busy: dict[str, int], query: dict[str, str], found: set[str]
) -> None:
    page = Visitor(scene.viewer).get(page_of(scene.endpoint), **query)
    assert shown(page, busy) == found
    assert page.has("no-match") == (not found)


def test_a_filter_that_is_none_narrows_nothing_and_says_so(
    scene: Scene, busy: dict[str, int]
) -> None:
    page = Visitor(scene.viewer).get(page_of(scene.endpoint), outcome="perhaps")
    assert shown(page, busy) == set(busy)
    assert "not understood: outcome" in page.text


def test_a_rare_outcome_is_looked_for_only_so_far(
    scene: Scene, busy: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "LOOKED_AT", 2)
    visitor, path = Visitor(scene.viewer), page_of(scene.endpoint)
    near = visitor.get(path, outcome="lost")
    assert shown(near, busy) == set()
    assert "Looked at 2 attempts, back to" in near.text
    assert f"outcome=lost&amp;before={busy['200']}" in near.html
    far = visitor.get(path, outcome="lost", before=str(busy["200"]))
    assert shown(far, busy) == {"lost"}


def test_a_change_of_filter_brings_the_page_s_live_part_with_its_new_address(
    scene: Scene, busy: dict[str, int]
) -> None:
    visitor, path = Visitor(scene.viewer), page_of(scene.endpoint)
    results = visitor.poll(path, "endpoint-results", outcome="lost")
    assert f'hx-get="{path}?outcome=lost"' in results.html
    assert "<html" not in results.html
    polled = visitor.poll(path, "endpoint-live", results.revision, outcome="lost")
    assert polled.status == 204


def test_an_attempt_says_how_far_it_is_and_leads_to_its_delivery(scene: Scene) -> None:
    command, delivery = scene.dispatched(), scene.send()
    for one in (command, delivery):
        record(no_answer(claim(one), "connection_refused"))
    page = Visitor(scene.viewer).get(page_of(scene.endpoint))
    assert reverse("command", args=[command.pk]) in page.html
    assert reverse("delivery", args=[delivery.pk]) in page.html
    assert page.text.count("1/5") == 2
    assert "connection_refused." in page.text


def test_an_answer_is_shown_inert_whatever_it_holds(scene: Scene) -> None:
    hostile = b"<script>alert(1)</script>\xff\x00\xe2\x80\xaetxt.exe"
    facts: dict[str, Any] = {"response_excerpt": hostile, "retry_after": "<b>", "location": "<i>"}
    record(answer(claim(scene.send()), 503, **facts))
    page = Visitor(scene.viewer).get(page_of(scene.endpoint))
    assert "<script>alert" not in page.html
    assert "\u202e" not in page.html
    assert "\u27e8U+202E\u27e9" in page.text
    assert "<b>" not in page.html
    assert "<i>" not in page.html


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"verdict": ""}, "on the wire"),
        ({"verdict": Verdict.LOST}, "outcome unknown"),
        ({"verdict": Verdict.DELIVERED, "status_code": 204}, "delivered"),
        ({"verdict": Verdict.RETRY, "status_code": 503}, "error"),
        ({"verdict": Verdict.RETRY, "status_code": 301}, "redirect, not followed"),
        ({"verdict": Verdict.FAIL, "status_code": 301}, "redirect, not followed"),
        ({"verdict": Verdict.FAIL, "status_code": 410}, "refused: no further attempt"),
        ({"verdict": Verdict.RETRY, "error_kind": "dns", "phase": "name"}, "no such name"),
        ({"verdict": Verdict.RETRY, "error_kind": "timeout"}, "timeout"),
        (
            {"verdict": Verdict.RETRY, "error_kind": "timeout", "phase": "headers"},
            "timeout while waiting for an answer",
        ),
    ],
)
def test_what_came_of_an_attempt_in_words(facts: dict[str, object], said: str) -> None:
    assert came_of(Attempt(**facts)) == said


def test_a_filter_costs_one_query_more_however_much_there_is(scene: Scene) -> None:
    visitor, path = Visitor(scene.viewer), page_of(scene.endpoint)

    def taken() -> tuple[int, int]:
        return (
            queries_of(lambda: visitor.get(path)),
            queries_of(lambda: visitor.get(path, outcome="lost")),
        )

    record(lost(claim(scene.send())))
    few = taken()
    for _ in range(20):
        record(lost(claim(scene.send())))
    assert taken() == few
    assert few[1] == few[0] + 1
