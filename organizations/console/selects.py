"""What a filter offers to choose from, and what is chosen of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Option:
    """One thing that a filter offers, perhaps in a group."""

    value: str
    label: str
    group: str = ""


@dataclass(frozen=True)
class Select:
    """A filter that offers options; ``every`` is what it says while it does not narrow."""

    name: str
    label: str
    every: str
    options: Sequence[Option]
    chosen: str = ""

    def choosing(self, value: str) -> Select:
        """With this value chosen, also when it is none that is offered any more."""
        offered = any(option.value == value for option in self.options)
        unknown = [] if offered or not value else [Option(value, "unknown")]
        return replace(self, options=[*unknown, *self.options], chosen=value)

    @property
    def words(self) -> str:
        """What is chosen. Of what is not offered, no name is known: it may be another organization's."""
        return next(option.label for option in self.options if option.value == self.chosen)
