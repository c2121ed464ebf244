"""When a notice is mailed: what is gathered, how often it is tried, and when it is given up."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final


class Kind(StrEnum):
    """What a notice tells of."""

    ENDPOINT_DISABLED = "endpoint_disabled"
    COMMAND_TIMED_OUT = "command_timed_out"
    COMMAND_FAILED = "command_failed"
    COMMAND_NACKED = "command_nacked"
    MEMBER_ADDED = "member_added"


# An owner cannot be spared that an endpoint was disabled: nothing is sent there until he acts. Nor can
# somebody who was added be spared the way in.
MUTABLE: Final = (Kind.COMMAND_TIMED_OUT, Kind.COMMAND_FAILED, Kind.COMMAND_NACKED)

# The first fact waits this long for company, seconds: commands with one deadline are timed out within
# a sweep or two, and become one mail.
GATHER_S: Final = 5
# Between two mails of one kind to one person, seconds: a trouble that goes on makes a digest a minute.
SPACING_S: Final = 60
# Facts that one mail stands for at most, and those among them that it names.
MAIL_LIMIT: Final = 1000
NAMED: Final = 10

# Waits after each failed try, seconds; the last one again and again.
WAITS_S: Final = (10, 60, 300, 1800, 7200)
# A mail server that was mended after a long weekend still gets them; later they are history.
GIVE_UP_AFTER: Final = timedelta(days=3)


def next_try_at(tries: int, happened_at: datetime, now: datetime) -> datetime | None:
    """When to try again after ``tries`` (from 1) that failed; None to give up."""
    if now - happened_at >= GIVE_UP_AFTER:
        return None
    return now + timedelta(seconds=WAITS_S[min(tries, len(WAITS_S)) - 1])
