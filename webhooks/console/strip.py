"""The health strip: an endpoint's last outcomes as bars, oldest on the left.

A success stands on the line and a failure hangs from it: they differ in shape, not in colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SLOTS = 20
# A bar and the gap after it, in pixels of the drawing.
STEP = 6


@dataclass(frozen=True)
class Bar:
    x: int
    delivered: bool


@dataclass(frozen=True)
class Strip:
    """Bars at their places; ``empty`` are the slots that no outcome fills yet."""

    bars: Sequence[Bar]
    empty: Sequence[int]
    words: str


def strip_of(newest_first: Sequence[str]) -> Strip:
    """Lay out outcomes ("delivered" or "failed"), newest first as health knows them."""
    shown = list(reversed(newest_first[:SLOTS]))
    free = SLOTS - len(shown)
    failed = sum(1 for outcome in shown if outcome != "delivered")
    return Strip(
        bars=[
            Bar((free + place) * STEP, outcome == "delivered")
            for place, outcome in enumerate(shown)
        ],
        empty=[place * STEP for place in range(free)],
        words=_words(len(shown), failed),
    )


def _words(total: int, failed: int) -> str:
    if not total:
        return "No outcome yet"
    if not failed:
        return f"The last {total} all delivered" if total > 1 else "The last one was delivered"
    if failed == total:
        return f"The last {total} all failed" if total > 1 else "The last one failed"
    return f"{failed} of the last {total} failed"
