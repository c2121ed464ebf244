"""Absolute times in words: to the second, in the zone that they come in, with how far it is from UTC."""

from __future__ import annotations

from datetime import datetime


def absolute(at: datetime) -> str:
    """``2026-01-31 09:30:00 UTC``, ``2026-01-31 10:30:00 UTC+1``."""
    return f"{at:%Y-%m-%d %H:%M:%S} {offset(at)}"


def offset(at: datetime) -> str:
    """``UTC``, ``UTC+2``, ``UTC-3:30``."""
    ahead = at.utcoffset()
    minutes = round(ahead.total_seconds() / 60) if ahead else 0
    if not minutes:
        return "UTC"
    hours, rest = divmod(abs(minutes), 60)
    return f"UTC{'-' if minutes < 0 else '+'}{hours}" + (f":{rest:02}" if rest else "")
