"""The last hour as two drawings over one axis of sixty columns: how many, and how many of them well.

Deliveries stand on the line and failed attempts hang from it, to one scale, like the bars of a health
strip. The success rate is a line that rests at the top; what is missing is filled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from django.utils import timezone

from webhooks.pace import Minute, Tally

# Units of the drawing, which is stretched to the width there is.
STEP: Final = 10
HEIGHT: Final = 100
BAR: Final = 9
# Ends of a scale: so many tenths of a power of ten.
ROUND: Final = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80, 100)
NOTHING: Final = Tally()


@dataclass(frozen=True)
class Column:
    """A minute at its place."""

    x: int
    tally: Tally | None
    # The time of day, as this browser is shown times.
    time: str

    @property
    def rate(self) -> float | None:
        return rate_of(self.tally or NOTHING)

    @property
    def words(self) -> str:
        if self.tally is None:
            return f"{self.time}: not counted yet"
        return f"{self.time}: {self.tally.delivered:,} delivered, {self.tally.failed:,} failed"


@dataclass(frozen=True)
class Chart:
    """What the template draws, as paths, and the sums that it says."""

    columns: Sequence[Column]
    sum: Tally
    # The numbers at both ends of the scale, and where the line between them lies.
    top: int
    bottom: int
    line_y: str
    delivered: str
    failed: str
    uncounted: str
    rate_line: str
    rate_missing: str

    @property
    def counted(self) -> int:
        return sum(1 for column in self.columns if column.tally is not None)

    @property
    def attempts(self) -> int:
        return self.sum.delivered + self.sum.failed

    @property
    def rate(self) -> float | None:
        return rate_of(self.sum)

    @property
    def newest_first(self) -> Iterator[Column]:
        return reversed(self.columns)

    @property
    def quarters(self) -> Sequence[Column]:
        """Where the axis has a time."""
        return self.columns[:: len(self.columns) // 4]


def chart_of(minutes: Sequence[Minute]) -> Chart:
    """Lay the minutes out, oldest on the left."""
    columns = [_column(place, minute) for place, minute in enumerate(minutes)]
    counted = [(column.x, column.tally) for column in columns if column.tally is not None]
    top = _scale(max((tally.delivered for _, tally in counted), default=0))
    bottom = _scale(max((tally.failed for _, tally in counted), default=0))
    unit = HEIGHT / ((top + bottom) or 1)
    line_y = top * unit if top or bottom else HEIGHT
    return Chart(
        columns=columns,
        sum=Tally(*(sum(parts) for parts in zip(NOTHING, *(t for _, t in counted), strict=True))),
        top=top,
        bottom=bottom,
        line_y=_number(line_y),
        delivered=_bars((x, line_y, -tally.delivered * unit) for x, tally in counted),
        failed=_bars((x, line_y, tally.failed * unit) for x, tally in counted),
        uncounted=_bars((column.x, 0, HEIGHT) for column in columns if column.tally is None),
        rate_line=" ".join(_steps(columns)),
        rate_missing=_bars((c.x, 0, (1 - c.rate) * HEIGHT) for c in columns if c.rate is not None),
    )


def rate_of(tally: Tally) -> float | None:
    """The part of the attempts that delivered, 0 to 1. A lost one says nothing about the receiver."""
    attempts = tally.delivered + tally.failed
    return tally.delivered / attempts if attempts else None


def _column(place: int, minute: Minute) -> Column:
    return Column(place * STEP, minute.tally, f"{timezone.localtime(minute.start):%H:%M}")


def _scale(highest: int) -> int:
    """A round number that is no less: a scale that does not move with every attempt."""
    if highest < 10:
        return highest
    tenth: int = 10 ** (len(str(highest)) - 2)
    return next(n * tenth for n in ROUND if n * tenth >= highest)


def _bars(bars: Iterable[tuple[int, float, float]]) -> str:
    """A path of bars, each from its place and start as far down (negative: up) as it is long."""
    return "".join(
        f"M{x},{_number(y)}h{BAR}v{_number(length)}h-{BAR}z" for x, y, length in bars if length
    )


def _steps(columns: Sequence[Column]) -> Iterator[str]:
    """The line of the rate, which breaks where nothing was attempted."""
    drawing = False
    for column in columns:
        rate = column.rate
        if rate is not None:
            y = _number((1 - rate) * HEIGHT)
            yield f"V{y}" if drawing else f"M{column.x},{y}"
            yield f"H{column.x + STEP}"
        drawing = rate is not None


def _number(value: float) -> str:
    return f"{round(value, 2):g}"
