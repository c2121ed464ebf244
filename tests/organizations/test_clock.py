"""Times as the API tells them, and the database's clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from organizations.clock import database_now, rfc3339


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (datetime(2026, 1, 31, 9, 30, tzinfo=UTC), "2026-01-31T09:30:00.000000Z"),
        (datetime(2026, 1, 31, 9, 30, 0, 250_000, tzinfo=UTC), "2026-01-31T09:30:00.250000Z"),
        (
            datetime(2026, 1, 1, 0, 30, 0, 1, tzinfo=timezone(timedelta(hours=2))),
            "2025-12-31T22:30:00.000001Z",
        ),
    ],
)
def test_a_time_is_told_in_utc_to_the_microsecond(at: datetime, text: str) -> None:
    assert rfc3339(at) == text
    assert datetime.fromisoformat(text) == at


@pytest.mark.django_db
def test_the_database_s_clock_moves_on_within_a_transaction() -> None:
    first, second = database_now(), database_now()

    assert first.tzinfo is not None
    assert first < second
