"""Times and untrusted text as a page shows them. ``console.js`` words the passing of time the same way."""

from __future__ import annotations

import unicodedata
from datetime import datetime

from django.utils import timezone

from organizations.console import zones
from organizations.rules import times

MINUTE, HOUR, DAY = 60, 3600, 86_400


def span(seconds: float) -> str:
    """A length of time with at most two units: ``42 s``, ``2 min 35 s``, ``34 h 7 min``."""
    whole = round(seconds)
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return _two(whole, MINUTE, "min", 1, "s")
    return (
        _two(whole, HOUR, "h", MINUTE, "min")
        if whole < 3 * DAY
        else _two(whole, DAY, "d", HOUR, "h")
    )


def _two(seconds: int, large: int, large_name: str, small: int, small_name: str) -> str:
    first, rest = divmod(seconds, large)
    second = rest // small
    return f"{first} {large_name} {second} {small_name}" if second else f"{first} {large_name}"


def ago(at: datetime, now: datetime) -> str:
    """How long ago, in one unit: ``12 s ago``."""
    seconds = max(int((now - at).total_seconds()), 0)
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min")):
        if seconds >= unit:
            return f"{seconds // unit} {name} ago"
    return f"{seconds} s ago"


def countdown(until: datetime, now: datetime) -> str:
    """What is left, to the second: ``0:42``, ``12:05``, ``34:07:00``. Empty when nothing is."""
    left = (until - now).total_seconds()
    if left <= 0:
        return ""
    # Rounded up: 0:00 is never shown while something is left.
    minutes, seconds = divmod(-int(-left // 1), MINUTE)
    hours, minutes = divmod(minutes, MINUTE)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def milliseconds(value: int) -> str:
    """``8 ms``, ``1.25 s``."""
    return f"{value} ms" if value < 1000 else f"{value / 1000:.2f} s"


def absolute(at: datetime) -> str:
    """The time as this browser is shown times, with how far it is from UTC."""
    return times.absolute(timezone.localtime(at))


def in_full(at: datetime) -> str:
    """The same with the name of the zone: ``2026-01-31 10:30:00 UTC+1 (Europe/Berlin)``."""
    name = zones.current_name()
    return f"{absolute(at)} ({name})" if name else absolute(at)


def clock(at: datetime) -> str:
    """The time of day: ``09:30:00 UTC``."""
    return absolute(at)[11:]


def inert(text: str) -> str:
    """Somebody else's text with everything that acts on its surroundings made visible: control
    characters, and the marks that turn the direction of the text after them.
    """
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if character in "\n\t" or character.isprintable() or category == "Zs":
        return character
    if ord(character) < 0x20:
        return chr(0x2400 + ord(character))
    return f"\N{MATHEMATICAL LEFT ANGLE BRACKET}U+{ord(character):04X}\N{MATHEMATICAL RIGHT ANGLE BRACKET}"
