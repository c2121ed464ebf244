"""Fields that take a value as it is or refuse it, and show it as the API writes it.

The framework's own fields are lenient: they turn 1 into "1", "30" into 30, "yes" into true. A promise
about a command must not rest on a guess.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, NoReturn
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from organizations.clock import rfc3339

RFC3339 = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})", re.ASCII
)
# An id that nothing has: what a malformed one stands for in a filter, which then finds nothing.
NO_ID = UUID(int=0)


class Text(serializers.CharField):
    """A string, kept as it is: no number for a string, no space cut off. Never empty unless allowed."""

    def __init__(self, **options: Any) -> None:
        shortest = 0 if options.get("allow_blank") else 1
        super().__init__(**{"trim_whitespace": False, "min_length": shortest, **options})

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return data


class Integer(serializers.IntegerField):
    """A JSON integer: neither true nor 1.0 nor "1"."""

    def to_internal_value(self, data: Any) -> int:
        if type(data) is not int:
            self.fail("invalid")
        return data


class Boolean(serializers.BooleanField):
    """true or false, nothing that looks like it."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class Choice(serializers.ChoiceField):
    """One of the listed strings."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or data not in self.choices:
            self.fail("invalid_choice", input=str(data)[:50])
        return data


@extend_schema_field({"type": "object", "additionalProperties": {}})
class JsonObject(serializers.Field[Any, Any, Any, Any]):
    """A JSON object with exact numbers."""

    default_error_messages = {"invalid": "Must be a JSON object."}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("invalid")
        return data

    def to_representation(self, value: Any) -> Any:
        return value


class Instant(serializers.DateTimeField):
    """An instant with its offset, RFC 3339; shown in UTC."""

    default_error_messages = {
        "invalid": "Must be a time with its offset, such as 2026-01-31T09:30:00Z (RFC 3339)."
    }

    def to_internal_value(self, value: Any) -> datetime:
        if not isinstance(value, str) or not RFC3339.fullmatch(value):
            self._refuse()
        try:
            return datetime.fromisoformat(value.upper()).astimezone(UTC)
        except (ValueError, OverflowError):
            self._refuse()

    def to_representation(self, value: Any) -> str:
        return rfc3339(value)

    def _refuse(self) -> NoReturn:
        self.fail("invalid")


# --- in the query -------------------------------------------------------------------------------


class Count(serializers.IntegerField):
    """A whole number written in decimal digits."""

    def to_internal_value(self, data: Any) -> int:
        if not re.fullmatch(r"\d{1,9}", str(data), re.ASCII):
            self.fail("invalid")
        return int(data)


@extend_schema_field(OpenApiTypes.STR)
class IdFilter(serializers.Field[Any, Any, Any, Any]):
    """The id of what a list is narrowed to. One that is malformed finds as little as an unknown one."""

    def to_internal_value(self, data: Any) -> UUID:
        return parse_id(str(data)) or NO_ID


def parse_id(text: str) -> UUID | None:
    """The id behind its text, in the one form that the API shows; None when it is not one."""
    try:
        found = UUID(text)
    except ValueError:
        return None
    return found if str(found) == text.lower() else None


# --- only shown ---------------------------------------------------------------------------------


class TextOrNull(serializers.CharField):
    """A text; what is empty in the database is null in the API."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_null": True, **options})

    def to_representation(self, value: Any) -> str | None:  # type: ignore[override]
        return str(value) or None


class ChoiceOrNull(serializers.ChoiceField):
    """One of the listed strings; null where there is none yet."""

    def __init__(self, choices: Any, **options: Any) -> None:
        super().__init__(choices, **{"allow_null": True, **options})

    def to_representation(self, value: Any) -> str | None:  # type: ignore[override]
        return str(value) or None
