"""Identifiers: UUIDv7, so that rows made together lie together in every index."""

from datetime import datetime, timedelta
from uuid import UUID

from uuid_utils.compat import uuid7

RANDOM_BITS = 80


def new_id() -> UUID:
    """A fresh id that sorts by the time it was made (to the millisecond)."""
    return uuid7()


def first_id_at(instant: datetime, shift: timedelta = timedelta()) -> UUID:
    """No id made at ``instant``, moved by ``shift``, or later sorts before this one."""
    milliseconds = int((instant.timestamp() + shift.total_seconds()) * 1000)
    return UUID(int=max(milliseconds, 0) << RANDOM_BITS)
