"""Identifiers: UUIDv7, so that rows made together lie together in every index."""

from uuid import UUID

from uuid_utils.compat import uuid7


def new_id() -> UUID:
    """A fresh id that sorts by the time it was made (to the millisecond)."""
    return uuid7()
