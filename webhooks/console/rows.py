"""Endpoints as pages show them, read with a constant number of queries."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db.models import F
from django.http import Http404

from organizations.actors import Actor
from organizations.console import words
from organizations.console.looks import Look
from organizations.console.selects import Option
from organizations.models import Organization
from webhooks import endpoints
from webhooks.console.strip import Strip, strip_of
from webhooks.models import Endpoint
from webhooks.rules.health import Health
from webhooks.rules.policies import Policy, RuleKind

FAILED_TOO_OFTEN = re.compile(r"failed_(\d+)_times_in_a_row")
ERROR_WORDS: Final = {
    "timeout": "timeout",
    "dns": "no such name",
    "connection_refused": "refused",
    "connection_reset": "reset",
    "tls": "TLS",
    "protocol": "not HTTP",
    "blocked_address": "blocked",
}


ENABLED: Final = Look("Enabled", "good", "acked")
DISABLED: Final = Look("Disabled", "person", "disabled")
ARCHIVED: Final = Look("Archived", "withdrawn", "disabled")


@dataclass(frozen=True)
class EndpointRow:
    """An endpoint with its health."""

    endpoint: Endpoint
    health: Health
    strip: Strip

    @property
    def look(self) -> Look:
        if self.endpoint.archived_at:
            return ARCHIVED
        return ENABLED if self.endpoint.enabled else DISABLED

    @property
    def warning(self) -> str:
        """How far it is from being disabled, once it fails."""
        if not self.endpoint.enabled or not self.health.consecutive_failures:
            return ""
        left, rule = self.health.failures_until_disabled, self.endpoint.schedule.disable_rule
        if rule.kind == RuleKind.ATTEMPTS_IN_A_ROW:
            unit = "failure disables" if left == 1 else "failures disable"
        else:
            unit = "failed delivery disables" if left == 1 else "failed deliveries disable"
        return f"{left} more {unit} it"

    @property
    def rule(self) -> str:
        """What disables it, while it works."""
        rule = self.endpoint.schedule.disable_rule
        attempts = rule.kind == RuleKind.ATTEMPTS_IN_A_ROW
        return f"{rule.count} {'failures' if attempts else 'failed deliveries'} in a row disable it"

    @property
    def is_near(self) -> bool:
        """Half of the way to being disabled: a failure now and then is no reason to be alarmed."""
        return 2 * self.health.consecutive_failures >= self.endpoint.schedule.disable_rule.count

    @property
    def disabled_because(self) -> str:
        """The reason in words; the engine's own is a code."""
        reason = self.endpoint.disabled_reason
        if match := FAILED_TOO_OFTEN.fullmatch(reason):
            return f"It failed {match[1]} times in a row."
        return reason


def endpoint_rows(organization: Organization) -> list[EndpointRow]:
    """The organization's endpoints: those that receive commands first, then by name."""
    found = list(
        Endpoint.objects.filter(organization=organization, archived_at=None).order_by(
            "-is_default", "-receives_commands", "name", "pk"
        )
    )
    healths = endpoints.health_of(found)
    return [_row(endpoint, healths[endpoint.pk]) for endpoint in found]


def endpoint_options(organization: Organization) -> list[Option]:
    """The organization's endpoints to choose from, those that are archived last."""
    found = Endpoint.objects.filter(organization=organization)
    return [
        Option(str(e.pk), e.name, "Archived" if e.archived_at else "")
        for e in found.order_by(F("archived_at").asc(nulls_first=True), "name", "pk")
    ]


def find(actor: Actor, pk: UUID) -> EndpointRow:
    """The organization's endpoint, or a page that says there is none."""
    endpoint = Endpoint.objects.filter(pk=pk, organization=actor.organization).first()
    if endpoint is None:
        raise Http404
    return row_of(endpoint)


def row_of(endpoint: Endpoint) -> EndpointRow:
    return _row(endpoint, endpoints.health_of([endpoint])[endpoint.pk])


def _row(endpoint: Endpoint, health: Health) -> EndpointRow:
    return EndpointRow(endpoint, health, strip_of(health.recent_outcomes))


def schedule_in_words(policy: Policy) -> str:
    """Such as ``at once, then after 5 s, 25 s, 2 min 5 s and 10 min 25 s``."""
    waits = [words.span(wait) for wait in policy.waits_s[1:]]
    if not waits:
        return "at once, and never again"
    *first, last = waits
    return f"at once, then after {', '.join(first)}{' and ' if first else ''}{last}"
