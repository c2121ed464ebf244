"""The database's clock, which alone decides what is due."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import connection


def database_now() -> datetime:
    """The instant the database's clock shows now (not when the transaction began)."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        row = cursor.fetchone()
    now: datetime = row[0]
    return now


def rfc3339(at: datetime) -> str:
    """An aware instant as RFC 3339 in UTC, to the microsecond: ``2026-01-31T09:30:00.250000Z``."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
