"""Somebody else's text, made fit for a mail: one line, nothing hidden, nothing that turns into a link."""

from __future__ import annotations

import re
from typing import Final

STAND_IN: Final = "\N{REPLACEMENT CHARACTER}"
# Joins emoji; without it a family falls apart into its members.
ZERO_WIDTH_JOINER: Final = "\N{ZERO WIDTH JOINER}"
WORD_JOINER: Final = "\N{WORD JOINER}"

# Where mail programs find an address in plain text: a dot inside a word, and the colon of a scheme.
_LINK_PART = re.compile(r"(?<=[^\W_])\.(?=[^\W_])|:(?=//)")


def one_line(text: str, limit: int) -> str:
    """At most ``limit`` characters on one line.

    Control characters, half surrogates and the marks that turn the direction of the text after them
    are replaced: a header, a database and a reader take the result as it looks.
    """
    line = "".join(_plain(character) for character in " ".join(text[: 8 * limit].split()))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _plain(character: str) -> str:
    if character.isprintable() or character == ZERO_WIDTH_JOINER:
        return character
    return STAND_IN


def unlinked(text: str) -> str:
    """The same text for the eye, in which no mail program finds an address to make a link of."""
    return _LINK_PART.sub(lambda found: found[0] + WORD_JOINER, text)
