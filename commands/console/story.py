"""A command's timeline in words: what happened, by whom, and why."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from commands.console.states import LOOKS, REFUSALS
from commands.errors import ReportRefused
from commands.models import CommandEvent
from commands.rules.states import State
from webhooks.console.deliveries import FAILURES

Kind = CommandEvent.Kind

VIA_WORDS: Final = {
    "api": "through the API",
    "admin": "in the admin",
    "cli": "on the command line",
}
PLAIN: Final = {
    Kind.ISSUED: "Issued",
    Kind.DISPATCHED: "Dispatched",
    Kind.DELIVERED: "Delivered: the endpoint answered 2xx",
    Kind.REPORT_EARLY: "Reported before the delivery was known; kept for it",
    Kind.RETRACTED: "Retracted",
    Kind.REISSUED: "Reissued",
}
REASONS: Final = {
    (Kind.ACKED, "reported_early"): "Acked by the report that came early",
    (Kind.NACKED, "reported_early"): "Nacked by the report that came early",
    (Kind.TIMED_OUT, "delivered_after_deadline"): "Timed out: delivered after its deadline",
    (Kind.TIMED_OUT, "deadline_passed"): "Timed out: the deadline passed without a report",
}


@dataclass(frozen=True)
class Told:
    """One line as the page shows it."""

    event: CommandEvent
    icon: str
    family: str
    words: str
    by: str


def tell(timeline: Iterable[CommandEvent]) -> list[Told]:
    return [_told(event) for event in timeline]


def _told(event: CommandEvent) -> Told:
    icon, family = _mark(event)
    return Told(event, icon, family, _words(event), _by(event))


def _mark(event: CommandEvent) -> tuple[str, str]:
    if event.kind in (Kind.DISPATCH_REFUSED, Kind.REPORT_REFUSED):
        return "refused", "person"
    if event.to_state:
        look = LOOKS[State(event.to_state)]
        return look.icon, look.family
    return ("reissue", "withdrawn") if event.kind == Kind.REISSUED else ("report", "waiting")


def _words(event: CommandEvent) -> str:
    kind, reason = Kind(event.kind), event.reason
    if kind in PLAIN:
        return PLAIN[kind]
    if (kind, reason) in REASONS:
        return REASONS[kind, reason]
    match kind:
        case Kind.DISPATCH_REFUSED:
            return f"Dispatch refused: {REFUSALS.get(reason, reason.replace('_', ' '))}"
        case Kind.FAILED:
            return f"Failed: {FAILURES.get(reason, reason.replace('_', ' '))}"
        case Kind.REPORT_REFUSED:
            return f"Report of {event.outcome} kept: {ReportRefused.sentences.get(reason, reason)}"
        case _:
            return LOOKS[State(event.to_state)].word


def _by(event: CommandEvent) -> str:
    if event.user is None:
        return ""
    via = VIA_WORDS.get(event.via, "")
    if event.api_key:
        via = f"through the API, key {event.api_key.name}"
    return f"{event.user.email} {via}".strip()
