"""What is measured: numbers with a unit, and the aim that some of them have."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


class BenchmarkFailed(Exception):
    """Something was not delivered, or a process died: there is nothing to measure."""


@dataclass(frozen=True)
class Figure:
    """One number. ``limit`` is its aim, from above or from below; a promise is an aim that is part of
    the contract, so that missing it fails the run."""

    name: str
    value: float
    unit: str = ""
    limit: float | None = None
    from_below: bool = False
    promise: bool = False

    @property
    def met(self) -> bool | None:
        """Whether it is what it should be; None when nothing is asked of it."""
        if self.limit is None:
            return None
        return self.value >= self.limit if self.from_below else self.value <= self.limit

    @property
    def aim(self) -> str:
        if self.limit is None:
            return ""
        return f"{'≥' if self.from_below else '≤'} {shown(self.limit)}"


def at_most(name: str, value: float, unit: str, limit: float) -> Figure:
    return Figure(name, value, unit, limit)


def at_least(name: str, value: float, unit: str, limit: float) -> Figure:
    return Figure(name, value, unit, limit, from_below=True)


def none_of(name: str, value: float) -> Figure:
    """Something that must not happen at all."""
    return Figure(name, value, "", 0, promise=True)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least ``share`` of them do not exceed."""
    if not values:
        raise BenchmarkFailed("There is nothing to take a percentile of.")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def shown(value: float) -> str:
    """Three digits, which is more than the machine repeats."""
    if value == round(value) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
