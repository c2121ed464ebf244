"""JSON that comes out as it went in: 1.10 stays 1.10, a 30-digit integer keeps its digits.

Parameters and event data are signed and sent on as bytes, so numbers are never rounded through binary
floats. What has no faithful form is refused with a reason: NaN, Infinity, a key that occurs twice, a
lone surrogate, nesting past any sense.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

import simplejson

# Levels of nesting at most. No command needs more, and parsers everywhere recurse on it.
MAX_DEPTH = 64
# Python converts text to an integer only up to 4,300 digits; a decimal keeps the digits of any number.
MAX_INTEGER_DIGITS = 4_000

_ENCODER, _SORTING = (
    simplejson.JSONEncoder(
        use_decimal=True,
        ensure_ascii=False,
        separators=(",", ":"),
        allow_nan=False,
        sort_keys=sort_keys,
    )
    for sort_keys in (False, True)
)


class NotExactJson(ValueError):
    """The text is not JSON that can be kept and sent on unchanged."""


def loads(text: str | bytes) -> Any:
    """Parse JSON text (UTF-8); numbers with a point or exponent become ``Decimal``.

    Raises NotExactJson with a sentence for the sender.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        value = simplejson.loads(
            text,
            use_decimal=True,
            parse_int=_integer,
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
        )
    except UnicodeDecodeError:
        raise NotExactJson("The body is not UTF-8.") from None
    except RecursionError:
        raise NotExactJson(f"Nested deeper than {MAX_DEPTH} levels.") from None
    except InvalidOperation:
        raise NotExactJson("A number has an exponent that cannot be kept.") from None
    except simplejson.JSONDecodeError as error:
        raise NotExactJson(f"Not JSON: {error}.") from None
    _check_depth(value)
    return value


def dumps(value: Any, *, sort_keys: bool = False) -> str:
    """The canonical text of a value from ``loads``: compact, keys in their order, UTF-8 as it is.

    ``sort_keys`` makes the text the same for objects that differ only in the order of their keys.
    """
    text: str = (_SORTING if sort_keys else _ENCODER).encode(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotExactJson("A string holds half of a surrogate pair.") from None
    return text


def verbatim(text: str) -> simplejson.RawJSON:
    """Text from ``dumps`` as a part of a larger value: written as it is, without being parsed again."""
    return simplejson.RawJSON(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise NotExactJson("A key occurs twice in one object.")
    return members


def _integer(text: str) -> int | Decimal:
    return Decimal(text) if text == "-0" or len(text) > MAX_INTEGER_DIGITS else int(text)


def _refuse_constant(name: str) -> Any:
    raise NotExactJson(f"{name} is not JSON.")


def _check_depth(value: Any) -> None:
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH + 1):
        if not level:
            return
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
        ]
    if level:
        raise NotExactJson(f"Nested deeper than {MAX_DEPTH} levels.")
