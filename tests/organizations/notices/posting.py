"""Facts to be told, time that passes, and a postman who works while the test waits."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.db.models.functions import Now

from organizations.actors import Actor
from organizations.models import Notice
from organizations.notices import outbox
from organizations.notices.outbox import Fact
from organizations.notices.postman import Postman
from organizations.rules.notices import Kind

_numbers = itertools.count(1)


def fact_for(actor: Actor, kind: Kind = Kind.COMMAND_TIMED_OUT, **content: Any) -> Fact:
    """A fact about a command that this person issued."""
    subject = uuid4()
    told = {
        "name": f"hold-{next(_numbers)}",
        "token": "t-1",
        "reason": "deadline_passed",
        "detail": "",
        "by": "owner@example.com",
    }
    return Fact(
        organization_id=actor.organization.pk,
        recipient_id=actor.user.pk,
        kind=kind,
        name=f"{kind}:{subject}",
        subject_id=subject,
        content=told | content,
    )


def disabling(organization_id: UUID, **content: Any) -> Fact:
    """An endpoint of the organization was disabled."""
    subject = uuid4()
    told = {
        "name": "Gateway",
        "reason": "failed_20_times_in_a_row",
        "since": "2026-01-31T09:30:00.250000Z",
        "ended": 0,
        "errors": [],
    }
    name = f"{Kind.ENDPOINT_DISABLED}:{subject}"
    return Fact(organization_id, None, Kind.ENDPOINT_DISABLED, name, subject, told | content)


def tell(*facts: Fact) -> list[Notice]:
    """Tell of facts whose first mail is due at once."""
    before = set(Notice.objects.values_list("pk", flat=True))
    outbox.tell(facts)
    gathered()
    return list(Notice.objects.exclude(pk__in=before).order_by("pk"))


def gathered() -> None:
    """Whatever waits for company or for its next try has waited long enough."""
    Notice.objects.filter(next_try_at__isnull=False).update(next_try_at=Now())


def left_behind() -> None:
    """Whoever had mails under way died long ago."""
    Notice.objects.filter(lease_until__isnull=False).update(
        lease_until=Now() - timedelta(seconds=1)
    )


def post() -> int:
    """Send what is due; how many mails that were."""
    return Postman().empty_outbox()


def states() -> list[str]:
    """The state of each notice, in their order."""
    return list(Notice.objects.order_by("pk").values_list("state", flat=True))
