"""The last hour as two drawings over one axis of sixty columns: how many, and how many of them well.

Deliveries stand on the line and failed attempts hang from it, to one scale, like the bars of a health
strip. The success rate is a line that rests at the top; what is missing is filled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from webhooks.pace import Minute, Tally

# Units of the drawing, which is stretched to the width there is.
STEP: Final = 10
HEIGHT: Final = 100
# Ends of a scale: so many tenths of a power of ten.
ROUND: Final = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100)
NOTHING: Final = Tally()


@dataclass(frozen=True)
class Column:
    """A minute at its place. Bars have a height of zero where there is nothing."""

    minute: Minute
    x: int
    rate: float | None
    delivered_y: float
    delivered_height: float
    failed_height: float
    # From the top: 0 is all of them. None without an attempt.
    rate_y: float | None


@dataclass(frozen=True)
class Chart:
    """What the template draws, and the sums that it says."""

    columns: Sequence[Column]
    # The numbers at both ends of the scale, and where the line between them lies.
    top: int
    bottom: int
    line_y: float
    rate_path: str
    sum: Tally
    counted: int

    @property
    def rate(self) -> float | None:
        return rate_of(self.sum)

    @property
    def attempts(self) -> int:
        return self.sum.delivered + self.sum.failed

    @property
    def newest_first(self) -> Iterator[Column]:
        return reversed(self.columns)

    @property
    def quarters(self) -> Sequence[Column]:
        """Where the axis has a time."""
        return self.columns[:: len(self.columns) // 4]

    @property
    def width(self) -> int:
        return STEP * len(self.columns)


def chart_of(minutes: Sequence[Minute]) -> Chart:
    """Lay the minutes out, oldest on the left."""
    tallies = [minute.tally or NOTHING for minute in minutes]
    top = _scale(max((tally.delivered for tally in tallies), default=0))
    bottom = _scale(max((tally.failed for tally in tallies), default=0))
    unit = HEIGHT / ((top + bottom) or 1)
    line_y = top * unit if top or bottom else HEIGHT
    columns = [_column(minute, place * STEP, line_y, unit) for place, minute in enumerate(minutes)]
    return Chart(
        columns=columns,
        top=top,
        bottom=bottom,
        line_y=round(line_y, 2),
        rate_path=" ".join(_steps(columns)),
        sum=Tally(*(sum(parts) for parts in zip(NOTHING, *tallies, strict=True))),
        counted=sum(1 for minute in minutes if minute.tally is not None),
    )


def rate_of(tally: Tally) -> float | None:
    """The part of the attempts that delivered, 0 to 1. A lost one says nothing about the receiver."""
    attempts = tally.delivered + tally.failed
    return tally.delivered / attempts if attempts else None


def _column(minute: Minute, x: int, line_y: float, unit: float) -> Column:
    tally = minute.tally or NOTHING
    rate = rate_of(tally)
    return Column(
        minute=minute,
        x=x,
        rate=rate,
        delivered_y=round(line_y - tally.delivered * unit, 2),
        delivered_height=round(tally.delivered * unit, 2),
        failed_height=round(tally.failed * unit, 2),
        rate_y=None if rate is None else round((1 - rate) * HEIGHT, 2),
    )


def _scale(highest: int) -> int:
    """A round number that is no less: a scale that does not move with every attempt."""
    if highest < 10:
        return highest
    tenth = 10 ** (len(str(highest)) - 2)
    return next(n * tenth for n in ROUND if n * tenth >= highest)


def _steps(columns: Sequence[Column]) -> Iterator[str]:
    """The line of the rate, which breaks where nothing was attempted."""
    drawing = False
    for column in columns:
        if column.rate_y is not None:
            yield f"V{column.rate_y}" if drawing else f"M{column.x},{column.rate_y}"
            yield f"H{column.x + STEP}"
        drawing = column.rate_y is not None
