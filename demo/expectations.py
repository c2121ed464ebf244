"""What a command of the demo must have come to, and in words what is wrong when it did not.

Pure: an `Observation` is what the API and the receiver's own log said, `unmet` compares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

# With capacity free an attempt starts within this after its time, and never before it.
MAX_LATENESS_MS = 250

# The policy `command`: seconds from the end of the attempt before to each retry, by its number.
WAITS_S = {2: 5, 3: 25, 4: 125, 5: 625}

# Results are recorded in batches, so a promise may lie a little after the end it counts from.
PROMISE_S = 0.25


@dataclass(frozen=True)
class Expectation:
    """`statuses` has one status code for each attempt, in order."""

    state: str
    statuses: tuple[int, ...]
    diagnosis: str
    refusal: str | None = None


@dataclass(frozen=True)
class AttemptSeen:
    """An attempt as the console recorded it. `due` is None when nothing promised it."""

    number: int
    due: datetime | None
    started: datetime | None
    finished: datetime | None
    outcome: int | str
    """The status code, or the kind of error where there was none."""

    @property
    def lateness_ms(self) -> float | None:
        if self.due is None or self.started is None:
            return None
        return (self.started - self.due).total_seconds() * 1000


@dataclass(frozen=True)
class PostSeen:
    """A POST as the receiver logged it; `arrived` is when its first byte came."""

    arrived: datetime
    webhook_id: str
    attempt: int | None
    signature_ok: bool


@dataclass(frozen=True)
class Observation:
    """Attempts and posts oldest first."""

    state: str
    diagnosis: str
    refusal: str | None
    attempts: tuple[AttemptSeen, ...]
    posts: tuple[PostSeen, ...]


def unmet(expected: Expectation, seen: Observation) -> list[str]:
    """Each expectation that failed, in words; empty when the command ended as it must."""
    return [
        *_refusal(expected, seen),
        *_differs("the state", expected.state, seen.state),
        *_differs("the attempts", _listed(expected.statuses), _listed(_outcomes(seen.attempts))),
        *_differs("the diagnosis", expected.diagnosis, seen.diagnosis),
        *_punctuality(seen.attempts),
        *_schedule(seen.attempts),
        *_posts(seen),
    ]


def retries(attempts: Sequence[AttemptSeen]) -> list[AttemptSeen]:
    return [attempt for attempt in attempts if attempt.number > 1]


def _differs(what: str, expected: str, seen: str) -> list[str]:
    return [] if expected == seen else [f"{what}: expected {expected}, saw {seen}"]


def _outcomes(attempts: Sequence[AttemptSeen]) -> tuple[int | str, ...]:
    return tuple(attempt.outcome for attempt in attempts)


def _listed(outcomes: Sequence[int | str]) -> str:
    count = len(outcomes)
    return f"{count} ({', '.join(map(str, outcomes))})" if count else "none"


def _refusal(expected: Expectation, seen: Observation) -> list[str]:
    def in_words(refusal: str | None) -> str:
        return f"refused with {refusal}" if refusal else "accepted"

    return _differs("the dispatch", in_words(expected.refusal), in_words(seen.refusal))


def _punctuality(attempts: Sequence[AttemptSeen]) -> list[str]:
    failures = []
    for attempt in retries(attempts):
        lateness = attempt.lateness_ms
        if lateness is None:
            failures.append(f"attempt {attempt.number} was made at a time nothing promised")
        elif lateness < 0:
            failures.append(f"attempt {attempt.number} started {-lateness:.1f} ms early")
        elif lateness > MAX_LATENESS_MS:
            failures.append(
                f"attempt {attempt.number} started {lateness:.0f} ms late, "
                f"more than {MAX_LATENESS_MS} ms"
            )
    return failures


def _schedule(attempts: Sequence[AttemptSeen]) -> list[str]:
    """The promise itself must be the policy's: due that many seconds after the attempt before."""
    return [
        f"attempt {attempt.number} was promised {promised:.1f} s after the one before, not {wait} s"
        for before, attempt in pairwise(attempts)
        if (wait := WAITS_S.get(attempt.number)) and attempt.due and before.finished
        if abs((promised := (attempt.due - before.finished).total_seconds()) - wait) > PROMISE_S
    ]


def _posts(seen: Observation) -> list[str]:
    """The receiver's own log must tell the same story as the console's record."""
    made, posts = len(seen.attempts), seen.posts
    failures = _differs("POSTs at the receiver", str(made), str(len(posts)))
    if any(not post.signature_ok for post in posts):
        failures.append("a POST came with a signature that does not verify")
    if len({post.webhook_id for post in posts}) > 1:
        failures.append("webhook-id changed between the attempts")
    numbers = [post.attempt for post in posts]
    if numbers != list(range(1, len(posts) + 1)):
        failures.append(f"the POSTs were numbered {numbers}, not 1 to {len(posts)}")
    return failures + _early_posts(posts)


def _early_posts(posts: Sequence[PostSeen]) -> list[str]:
    """By the receiver's clock alone: a wait counts from an answer, so POST to POST is longer."""
    return [
        f"POST {number} came {gap:.1f} s after the one before, sooner than {WAITS_S[number]} s"
        for number, (before, post) in enumerate(pairwise(posts), start=2)
        if (gap := (post.arrived - before.arrived).total_seconds()) < WAITS_S.get(number, 0)
    ]


def attempts_from_rows(
    rows: Sequence[dict[str, object]], dispatched: datetime | None
) -> tuple[AttemptSeen, ...]:
    """Attempts from the API's rows, in any order: each is due when the row before it said."""
    ordered = sorted(rows, key=lambda row: int(str(row["number"])))
    dues = [dispatched, *(instant(before["nextAttemptAt"]) for before, _ in pairwise(ordered))]
    return tuple(
        AttemptSeen(
            number=int(str(row["number"])),
            due=due,
            started=instant(row["startedAt"]),
            finished=instant(row["finishedAt"]),
            outcome=_outcome(row),
        )
        for row, due in zip(ordered, dues, strict=False)
    )


def posts_from_log(entries: Sequence[dict[str, object]]) -> tuple[PostSeen, ...]:
    return tuple(
        PostSeen(
            arrived=datetime.fromtimestamp(float(str(entry["arrived"])), UTC),
            webhook_id=str(entry["webhookId"]),
            attempt=int(str(entry["attempt"])) if entry["attempt"] is not None else None,
            signature_ok=entry["signatureOk"] is True,
        )
        for entry in entries
    )


def instant(text: object) -> datetime | None:
    """An RFC 3339 time of the API, or None where it says null."""
    return None if text is None else datetime.fromisoformat(str(text))


def _outcome(row: dict[str, object]) -> int | str:
    status = row["statusCode"]
    return int(str(status)) if status is not None else str(row["errorKind"] or "open")
