"""An owner's headers as lines of text, in which a stored value is never shown: a mask stands for it.

A line left as it is keeps its value, a line taken away removes the header, any other value is stored.
Values are credentials as often as not: no message repeats one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django import forms

MASK: Final = "\N{BULLET}" * 8
HELP: Final = (
    "Sent along with each attempt, one a line. Values are stored encrypted and never shown again."
)
HELP_STORED: Final = f"{HELP} Leave {MASK} to keep one, take its line away to remove it."
ATTRIBUTES: Final = {
    "rows": 3,
    "class": "code",
    "autocomplete": "off",
    "spellcheck": "false",
    "placeholder": "Name: value",
}


class HeadersField(forms.CharField):
    """One header a line."""

    def __init__(self) -> None:
        super().__init__(
            required=False,
            max_length=40_000,
            help_text=HELP,
            widget=forms.Textarea(attrs=ATTRIBUTES),
        )

    def has_changed(self, initial: Any, data: Any) -> bool:
        return sorted(_lines(initial)) != sorted(_lines(data))


def masked(names: Iterable[str]) -> str:
    """The stored headers as text."""
    return "\n".join(f"{name}: {MASK}" for name in names)


def parsed(text: str, stored: Iterable[str]) -> dict[str, str]:
    """The headers that somebody wrote, by name; a mask stands where the stored value is to stay.

    Raises ValidationError.
    """
    known = {name.lower() for name in stored}
    found: dict[str, str] = {}
    for number, line in enumerate(_lines(text), start=1):
        name, value = _header(number, line)
        if name.lower() in {one.lower() for one in found}:
            raise forms.ValidationError(f"{name} occurs twice.")
        if value == MASK and name.lower() not in known:
            raise forms.ValidationError(f"No value of {name} is stored: write one.")
        found[name] = value
    return found


def _header(number: int, line: str) -> tuple[str, str]:
    name, colon, value = line.partition(":")
    if not (colon and name.strip() and value.strip(" \t")):
        raise forms.ValidationError(f"Line {number} is no header: write it as Name: value.")
    return name.strip(), value.strip(" \t")


def changes(was: str, wanted: dict[str, str]) -> dict[str, str | None]:
    """What becomes of the headers in the text that the form was made with: those gone are removed (None),
    those still masked stay.
    """
    kept = {name.lower() for name in wanted}
    names = (line.partition(":")[0].strip() for line in _lines(was))
    return {
        **{name: None for name in names if name.lower() not in kept},
        **{name: value for name, value in wanted.items() if value != MASK},
    }


def _lines(text: str | None) -> list[str]:
    """The lines that say something. A line ends with a line feed, and with nothing else: a value must not
    become a second header because of another character that some take for an end.
    """
    lines = (text or "").replace("\r\n", "\n").split("\n")
    return [line.strip(" \t") for line in lines if line.strip(" \t")]
