"""The list of commands: one page of rows, read with one query, and what each has ahead of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from commands import queries
from commands.console.states import REFUSALS, look_of
from commands.queries import Filters, Span
from commands.rules.states import State
from organizations.console.looks import Look
from organizations.console.responses import revision_of
from organizations.models import Organization
from webhooks.console.deliveries import FAILURES, Ahead
from webhooks.policies import of_delivery

PAGE_SIZE = 50
# "99+ new" says as much as the number would, and costs as little however many came.
NEW_AT_MOST = 99

FIELDS = (
    "pk",
    "name",
    "client_token",
    "state",
    "dispatch_refusal",
    "failure_reason",
    "issued_at",
    "ack_deadline",
    "dataset__name",
    "dataset__experiment__name",
    "delivery__policy",
    "delivery__policy_terms",
    "delivery__attempts",
    "delivery__next_attempt_at",
    "delivery__lease_until",
    "delivery__endpoint__name",
)


@dataclass(frozen=True)
class Row:
    """A command as the list shows it."""

    facts: dict[str, Any]
    look: Look
    ahead: Ahead

    @property
    def attempts(self) -> str:
        """Made of planned, such as ``2/5``; empty before a dispatch."""
        if self.facts["delivery__policy"] is None:
            return ""
        policy = of_delivery(self.facts["delivery__policy"], self.facts["delivery__policy_terms"])
        return f"{self.facts['delivery__attempts']}/{policy.attempts}"


@dataclass(frozen=True)
class Page:
    """Rows, newest first; ``older`` is the cursor of the next page."""

    rows: Sequence[Row]
    older: UUID | None
    revision: str

    @property
    def newest(self) -> UUID | None:
        return self.rows[0].facts["pk"] if self.rows else None


def page_of(organization: Organization, filters: Filters, before: UUID | None) -> Page:
    """The newest commands that match, or those older than ``before``. Raises TookTooLong."""
    commands = queries.matching(organization, filters, Span(before=before))
    with queries.searching(filters):
        found = list(commands.values(*FIELDS)[: PAGE_SIZE + 1])
    rows = [row_of(facts) for facts in found[:PAGE_SIZE]]
    older = rows[-1].facts["pk"] if len(found) > PAGE_SIZE else None
    return Page(rows, older, revision_of([row.facts for row in rows], older))


def newer_than(organization: Organization, filters: Filters, newest: UUID) -> int:
    """How many commands that match came since, at most ``NEW_AT_MOST`` and one. Raises TookTooLong."""
    ids = queries.matching(organization, filters, Span(after=newest)).values_list("pk", flat=True)
    with queries.searching(filters):
        return len(ids[: NEW_AT_MOST + 1])


def row_of(facts: dict[str, Any]) -> Row:
    return Row(facts, look_of(facts["state"], facts["dispatch_refusal"]), ahead_of(facts))


def ahead_of(facts: dict[str, Any]) -> Ahead:
    """What comes next for a command with these facts."""
    match facts["state"]:
        case State.LOGGED if facts["dispatch_refusal"]:
            code = facts["dispatch_refusal"]
            return Ahead(REFUSALS.get(code, code))
        case State.LOGGED:
            return Ahead("to be dispatched")
        case State.QUEUED if facts["delivery__next_attempt_at"]:
            number = facts["delivery__attempts"] + 1
            return Ahead(f"attempt {number}", facts["delivery__next_attempt_at"], "due now")
        case State.QUEUED:
            return Ahead("on the wire")
        case State.DELIVERED:
            return Ahead("ack deadline", facts["ack_deadline"], "passed")
        case State.FAILED:
            code = facts["failure_reason"]
            return Ahead(FAILURES.get(code, code))
        case State.TIMED_OUT:
            return Ahead("outcome unknown")
        case _:
            return Ahead("")
