"""What a mail says, in words, before it becomes text and HTML.

A notice's ``content`` is what its writer knew when it happened:

* of an endpoint: ``name``, ``reason`` (a code or an owner's words), ``since``, ``ended`` (how many
  waiting deliveries) and ``errors``, each with ``at``, ``words`` and ``said`` (the answer's start),
  times as RFC 3339;
* of a command: ``name``, ``token``, ``reason`` (a code) and ``detail`` (the integrator's words);
* of a member: ``name`` (the role) and ``by`` (who added him).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from organizations.rules.notices import MUTABLE, NAMED, Kind
from organizations.rules.texts import one_line, unlinked

# Characters of a name in a subject line, which a mail program shows some sixty of.
SUBJECT_NAME: Final = 60
FAILED_TOO_OFTEN: Final = re.compile(r"failed_(\d+)_times_in_a_row")

REASONS: Final = {
    "attempts_exhausted": "Every attempt failed.",
    "refused": "The receiver refused it.",
    "endpoint_disabled": "Its endpoint was disabled while it waited.",
    "deadline_passed": "Nobody reported before the deadline.",
    "delivered_after_deadline": "It was delivered only after its deadline.",
}


@dataclass(frozen=True)
class Words:
    """How a kind is told: of one, of many, what is known, what to do, and where the rest is listed."""

    one: str
    many: str
    known: str
    next_step: str
    list_words: str
    list_query: str


WORDS: Final = {
    Kind.ENDPOINT_DISABLED: Words(
        one="Endpoint disabled",
        many="endpoints were disabled",
        known="Nothing is sent there any more. Deliveries that waited ended as failed, and their"
        " commands with them. Nothing is replayed later.",
        next_step="Have the receiver mended, test it with a ping from the endpoint's page, then enable"
        " the endpoint there. Only an owner can. Reissue the commands that are still wanted.",
        list_words="All endpoints",
        list_query="",
    ),
    Kind.COMMAND_TIMED_OUT: Words(
        one="Command timed out",
        many="commands timed out",
        known="Delivered fine, and nobody reported: nobody knows what the vehicle did.",
        next_step="Find out what the vehicle did before you reissue: it may have carried the command"
        " out.",
        list_words="All commands that timed out",
        list_query="state=timed_out",
    ),
    Kind.COMMAND_FAILED: Words(
        one="Command failed",
        many="commands failed",
        known="Not delivered, and not tried again.",
        next_step="Each command's page says what happened and on whose side. Have it mended, then"
        " reissue what is still wanted.",
        list_words="All commands that failed",
        list_query="state=failed",
    ),
    Kind.COMMAND_NACKED: Words(
        one="Command rejected",
        many="commands were rejected",
        known="Delivered, and the integrator reported that it was rejected.",
        next_step="Read the detail, and reissue when the cause is gone.",
        list_words="All commands that were rejected",
        list_query="state=nacked",
    ),
    Kind.MEMBER_ADDED: Words(
        one="Access to the console",
        many="invitations to the console",
        known="You were given access to the console.",
        next_step="Follow the link to get in. If you have no password yet you choose one there: the link"
        " does that once, within three days. After that, ask an owner for another.",
        list_words="The console",
        list_query="",
    ),
}


@dataclass(frozen=True)
class Item:
    """One thing that a letter names, with what is known of it alone."""

    subject_id: UUID
    title: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Letter:
    """A mail's words. ``left_out`` are the facts it counts but does not name."""

    subject: str
    known: str
    items: Sequence[Item]
    left_out: int
    next_step: str
    list_words: str
    list_query: str
    can_be_switched_off: bool


def compose(
    kind: Kind, organization: str, facts: Sequence[tuple[UUID, Mapping[str, Any]]]
) -> Letter:
    """The letter about these facts (subject's id and content), of which it names the first few."""
    words = WORDS[kind]
    items = [item_of(kind, subject_id, content) for subject_id, content in facts[:NAMED]]
    return Letter(
        subject=_subject(words, one_line(organization, SUBJECT_NAME), items, len(facts)),
        known=words.known,
        items=items,
        left_out=len(facts) - len(items),
        next_step=words.next_step,
        list_words=words.list_words,
        list_query=words.list_query,
        can_be_switched_off=kind in MUTABLE,
    )


def _subject(words: Words, organization: str, items: Sequence[Item], count: int) -> str:
    if count > 1:
        return f"{count} {words.many} ({organization})"
    return f"{words.one}: {one_line(items[0].title, SUBJECT_NAME)} ({organization})"


def item_of(kind: Kind, subject_id: UUID, content: Mapping[str, Any]) -> Item:
    """What is said of one endpoint, command or member."""
    match kind:
        case Kind.ENDPOINT_DISABLED:
            lines = _of_endpoint(content)
        case Kind.MEMBER_ADDED:
            lines = [f"As {content['name']}, by {unlinked(content['by'])}."]
        case _:
            lines = _of_command(content)
    return Item(subject_id, one_line(content["name"], 200), lines)


def _of_endpoint(content: Mapping[str, Any]) -> list[str]:
    lines = [f"Disabled at {_utc(content['since'])}. {why_disabled(content['reason'])}"]
    if ended := content["ended"]:
        lines.append(
            f"{ended} waiting {'delivery' if ended == 1 else 'deliveries'} ended as failed."
        )
    return lines + [_error(error) for error in content["errors"]]


def _error(error: Mapping[str, str]) -> str:
    said = f" It said: “{unlinked(error['said'])}”" if error["said"] else ""
    return f"{_utc(error['at'])}: {unlinked(error['words'])}{said}"


def _of_command(content: Mapping[str, Any]) -> list[str]:
    lines = [f"Client token {content['token']}"]
    if reason := REASONS.get(content["reason"]):
        lines.append(reason)
    if content["detail"]:
        lines.append(f"Reported: “{unlinked(content['detail'])}”")
    return lines


def why_disabled(reason: str) -> str:
    """The engine's own reason in words, or the words of the owner who did it."""
    if found := FAILED_TOO_OFTEN.fullmatch(reason):
        return f"It failed {found[1]} times in a row."
    return reason


def _utc(at: str) -> str:
    return f"{datetime.fromisoformat(at):%Y-%m-%d %H:%M:%S} UTC"
