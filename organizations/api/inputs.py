"""Reads what a client sends, and refuses what it does not understand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import QueryDict
from rest_framework import serializers
from rest_framework.exceptions import ValidationError


class Input(serializers.Serializer[Any]):
    """Fields by name. A field that it does not know is an error: a misspelt option is not ignored."""

    def to_internal_value(self, data: Any) -> Any:
        unknown = set(data) - set(self.fields) if isinstance(data, Mapping) else set()
        errors: dict[str, Any] = {name: ["There is no such field."] for name in sorted(unknown)}
        try:
            values = super().to_internal_value(data)
        except ValidationError as error:
            if not isinstance(error.detail, dict):
                raise
            errors = {**errors, **error.detail}
        if errors:
            raise ValidationError(errors)
        return values


class Nothing(Input):
    """An empty object, or no body at all."""


def validated(kind: type[Input], data: Any) -> dict[str, Any]:
    """The values by the names of the code. Raises ValidationError."""
    reader = kind(data=data)
    reader.is_valid(raise_exception=True)
    values: dict[str, Any] = reader.validated_data
    return values


def validated_query(kind: type[Input], query: QueryDict) -> dict[str, Any]:
    """The same for the parameters of an address, of which each may occur once."""
    repeated = {name: ["Occurs more than once."] for name, all_ in query.lists() if len(all_) > 1}
    if repeated:
        raise ValidationError(repeated)
    return validated(kind, query.dict())
