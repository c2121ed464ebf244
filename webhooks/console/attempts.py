"""Attempts as pages show them: in words, on the schedule line, and an endpoint's newest."""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.db.models import Q

from organizations import paging
from organizations.console.fields import ConsoleForm
from organizations.console.looks import Look
from organizations.paging import Listing, Page
from webhooks.console.rows import ERROR_WORDS
from webhooks.console.schedule import Made
from webhooks.models import Attempt, Endpoint
from webhooks.rules.verdicts import ErrorKind, Phase, Verdict

OUTCOMES: Final = {
    Verdict.DELIVERED: Look("Delivered", "good", "acked", "Answered with 2xx"),
    Verdict.RETRY: Look("Retry", "bad", "failed", "Failed; another one followed, if any was left"),
    Verdict.FAIL: Look("Failed", "bad", "failed", "Refused: it ended its delivery"),
    Verdict.LOST: Look("Lost", "person", "lost", "Nobody knows whether it arrived"),
}
# Where an attempt broke off, for errors of which the kind does not say it.
PHASES: Final = {
    Phase.NAME: "while looking up the name",
    Phase.CONNECT: "while connecting",
    Phase.TLS: "during the TLS handshake",
    Phase.SEND: "while sending",
    Phase.HEADERS: "while waiting for an answer",
}
ANYWHERE: Final = {ErrorKind.TIMEOUT, ErrorKind.CONNECTION_RESET, ErrorKind.PROTOCOL}
STATUS_CLASSES: Final = {"2xx": 200, "3xx": 300, "4xx": 400, "5xx": 500}


class AttemptFilterForm(ConsoleForm):
    """What narrows an endpoint's attempts, as it stands in the address."""

    outcome = forms.ChoiceField(
        required=False, choices=[(name, look.word) for name, look in OUTCOMES.items()]
    )
    answer = forms.ChoiceField(
        required=False,
        choices=[
            ("Answered with", [(name, name) for name in STATUS_CLASSES]),
            ("No answer", [(kind, word) for kind, word in ERROR_WORDS.items()]),
        ],
    )

    @property
    def condition(self) -> Q | None:
        """Of the filters that were understood."""
        return paging.only({"outcome": _came_to, "answer": _answered}, self.cleaned_data)


def _came_to(outcome: str) -> Q:
    return Q(verdict=outcome)


def _answered(answer: str) -> Q:
    """A class of status codes, or the kind of an error."""
    lowest = STATUS_CLASSES.get(answer)
    if lowest is None:
        return Q(error_kind=answer)
    return Q(status_code__gte=lowest, status_code__lt=lowest + 100)


def _listing(endpoint: Endpoint) -> Listing[Attempt]:
    attempts = Attempt.objects.filter(endpoint=endpoint).select_related("delivery__event")
    return Listing(attempts.defer("delivery__event__body"), "pk", "claimed_at")


def page_of(endpoint: Endpoint, before: int | None, condition: Q | None) -> Page[Attempt]:
    """The endpoint's newest attempts, or those older than ``before``."""
    return _listing(endpoint).page(before, condition)


def sight_of(endpoint: Endpoint, before: int | None, condition: Q | None) -> Page[Any]:
    """Whatever of that page can change."""
    return _listing(endpoint).sight(before, condition, "finished_at")


def facts_of(attempt: Attempt) -> tuple[Any, ...]:
    """Whatever of an attempt can change on a page."""
    return (attempt.pk, attempt.finished_at)


def came_of(attempt: Attempt) -> str:
    """What came of it, beside its status code or instead of one."""
    if not attempt.verdict:
        return "on the wire"
    if attempt.verdict == Verdict.LOST:
        return "outcome unknown"
    if attempt.status_code is None:
        return _broke_off(attempt)
    if attempt.verdict == Verdict.DELIVERED:
        return "delivered"
    if 300 <= attempt.status_code < 400:
        return "redirect, not followed"
    return "refused: no further attempt" if attempt.verdict == Verdict.FAIL else "error"


def _broke_off(attempt: Attempt) -> str:
    word = ERROR_WORDS.get(attempt.error_kind, attempt.error_kind)
    if attempt.error_kind in ANYWHERE and attempt.phase in PHASES:
        return f"{word} {PHASES[Phase(attempt.phase)]}"
    return word


def made_of(attempt: Attempt) -> Made:
    """The attempt as the schedule line draws it."""
    return Made(
        number=attempt.number,
        due_at=attempt.due_at,
        started_at=attempt.started_at or attempt.claimed_at,
        finished_at=attempt.finished_at,
        verdict=attempt.verdict,
        status_code=attempt.status_code,
        error_kind=attempt.error_kind,
    )
