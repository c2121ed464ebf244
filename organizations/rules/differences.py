"""What changed between two sets of facts, field by field, as somebody reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

# Characters of one value: a URL fits, a long description is for its own page.
SHOWN: Final = 300
NOTHING: Final = "—"
_CAPITAL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


@dataclass(frozen=True)
class Change:
    """A field that has another value now. ``old`` is empty where there was no such field."""

    field: str
    old: str
    new: str


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """The fields whose values differ, those of ``after`` first. Values stay somebody else's text."""
    fields = [*after, *(field for field in before if field not in after)]
    return [
        Change(
            field_in_words(field),
            in_words(before[field]) if field in before else "",
            in_words(after[field]) if field in after else NOTHING,
        )
        for field in fields
        if field not in before or field not in after or before[field] != after[field]
    ]


def field_in_words(field: str) -> str:
    """``receivesCommands`` and ``is_active`` as ``receives commands`` and ``is active``."""
    words = _CAPITAL.sub(" ", field).replace("_", " ")
    return " ".join(w if w.isupper() and len(w) > 1 else w.lower() for w in words.split())


def in_words(value: Any) -> str:
    """A JSON value in a line."""
    match value:
        case None | "" | []:
            return NOTHING
        case True | False:
            return "yes" if value else "no"
        case str():
            text = _as_time(value) or value
        case list():
            text = ", ".join(in_words(one) for one in value)
        case _:
            text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def _as_time(text: str) -> str:
    """A time as ``rfc3339`` writes it, for people; empty for what is none."""
    if not _TIME.fullmatch(text):
        return ""
    try:
        return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M:%S} UTC"
    except ValueError:
        return ""
