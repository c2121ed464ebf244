"""How a state looks: a word, a picture and a family of colours, which differ in all three."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """``family`` is waiting, good, bad or person; withdrawn and quiet stand apart: nothing is asked of
    anyone.
    """

    word: str
    family: str
    icon: str
    meaning: str = ""
