"""The list as a file for spreadsheets: everything that matches, read and sent batch by batch.

No number of rows needs more memory than one batch, no transaction stays open, and what arrives meanwhile
is not part of it. What others wrote never becomes a formula: see ``cell``.
"""

from __future__ import annotations

import csv
import io
import re
import threading
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from commands import queries
from commands.queries import Filters, Span
from organizations.clock import rfc3339
from organizations.models import Organization

BATCH = 1000
# A file of a million rows takes a web thread for two minutes. Most threads stay for those who report.
AT_ONCE: Final = 2
_slots = threading.BoundedSemaphore(AT_ONCE)

# Spreadsheets know UTF-8 by this alone.
BYTE_ORDER_MARK: Final = "\N{ZERO WIDTH NO-BREAK SPACE}"
# How a cell begins that a spreadsheet takes for a formula; the wide forms count in East Asian ones.
FORMULA: Final = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")

# The API's names. Parameters, which may be large, are read from the API.
COLUMNS: Final = {
    "id": "pk",
    "clientToken": "client_token",
    "name": "name",
    "state": "state",
    "experiment": "dataset__experiment__name",
    "dataset": "dataset__name",
    "endpoint": "delivery__endpoint__name",
    "issuedBy": "issued_by__email",
    "issuedAt": "issued_at",
    "dispatchRefusal": "dispatch_refusal",
    "dispatchedAt": "dispatched_at",
    "attempts": "delivery__attempts",
    "nextAttemptAt": "delivery__next_attempt_at",
    "deliveredAt": "delivered_at",
    "ackDeadline": "ack_deadline",
    "settledAt": "settled_at",
    "failureReason": "failure_reason",
    "retractedBy": "retracted_by__email",
    "retractedAt": "retracted_at",
    "retractionReason": "retraction_reason",
    "reissueOf": "reissue_of_id",
}


class Busy(Exception):
    """As many exports are under way as there may be."""


def filename(now: datetime) -> str:
    """With the time in UTC: ``commands-20260131T093000Z.csv``."""
    return f"commands-{now:%Y%m%dT%H%M%SZ}.csv"


def lines(organization: Organization, filters: Filters) -> Iterator[bytes]:
    """The file in pieces, the newest command first. Raises Busy or TookTooLong with the first piece."""
    if not _slots.acquire(blocking=False):
        raise Busy
    try:
        head = BYTE_ORDER_MARK + _csv([list(COLUMNS)])
        for batch in _batches(organization, filters):
            yield (head + _csv([cell(value) for value in row] for row in batch)).encode()
            head = ""
    finally:
        _slots.release()


def _batches(organization: Organization, filters: Filters) -> Iterator[list[tuple[Any, ...]]]:
    """At least one, which may be empty."""
    before: UUID | None = None
    while True:
        found = queries.matching(organization, filters, Span(before=before))
        with queries.searching(filters):
            batch = list(found.values_list(*COLUMNS.values())[:BATCH])
        yield batch
        if len(batch) < BATCH:
            return
        before = batch[-1][0]


def cell(value: Any) -> str:
    """A value as it stands in the file: times in UTC, and text that a spreadsheet would calculate with an
    apostrophe in front, which makes it text.
    """
    if value is None:
        return ""
    if isinstance(value, datetime):
        return rfc3339(value)
    text = str(value)
    return f"'{text}" if FORMULA.match(text) else text


def _csv(rows: Iterable[list[str]]) -> str:
    """Rows as RFC 4180 has them: CRLF, quotes where needed and doubled inside."""
    written = io.StringIO(newline="")
    csv.writer(written).writerows(rows)
    return written.getvalue()
