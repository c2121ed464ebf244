"""What an organization's owners are told: that an endpoint was disabled, and what it answered last."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from organizations.clock import rfc3339
from organizations.notices import outbox
from organizations.notices.outbox import Fact
from organizations.rules.notices import Kind
from organizations.rules.texts import one_line
from webhooks.models import Attempt, Endpoint
from webhooks.rules.verdicts import Verdict

# The last errors that a notice quotes, and how much of each: enough to recognise the trouble.
ERRORS: Final = 3
WORDS_LIMIT, SAID_LIMIT = 300, 120


def tell_disabled(endpoint_id: UUID, ended: int) -> None:
    """Tell the owners once, in the transaction that disabled it and so ended waiting deliveries."""
    endpoint = Endpoint.objects.get(pk=endpoint_id)
    assert endpoint.disabled_at
    if endpoint.archived_at:
        # Somebody is done with it: nothing is to be mended or enabled.
        return
    content = {
        "name": one_line(endpoint.name, 200),
        "reason": one_line(endpoint.disabled_reason, 200),
        "since": rfc3339(endpoint.disabled_at),
        "ended": ended,
        "errors": [_error(attempt) for attempt in _last_failures(endpoint)],
    }
    # Disabled again later is another fact: it has another time.
    name = f"{Kind.ENDPOINT_DISABLED}:{endpoint.pk}:{endpoint.disabled_at.timestamp()}"
    organization_id = endpoint.organization_id
    outbox.tell([Fact(organization_id, None, Kind.ENDPOINT_DISABLED, name, endpoint.pk, content)])


def _last_failures(endpoint: Endpoint) -> list[Attempt]:
    failures = Attempt.objects.filter(
        endpoint=endpoint,
        verdict__in=[Verdict.RETRY, Verdict.FAIL],
        finished_at__gt=endpoint.health_since,
        delivery__is_ping=False,
    )
    return list(failures.order_by("-pk")[:ERRORS])


def _error(attempt: Attempt) -> dict[str, str]:
    answered = f"It answered {attempt.status_code}."
    assert attempt.finished_at
    return {
        "at": rfc3339(attempt.finished_at),
        "words": one_line(answered if attempt.status_code else attempt.error, WORDS_LIMIT),
        "said": one_line(attempt.excerpt_text, SAID_LIMIT),
    }
