"""Types of events to choose from: the console's own as boxes, by their first word, all others written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from django import forms
from django.template import loader
from django.utils.datastructures import MultiValueDict
from django.utils.safestring import SafeString

from webhooks.rules.event_types import CATALOGUE, WILDCARD, EventType

EVERYTHING: Final = "Everything, whoever tells it, also what is added later"
SEPARATORS = re.compile(r"[\s,]+")


@dataclass(frozen=True)
class Choice:
    """A subscription and what it brings."""

    name: str
    words: str


@dataclass(frozen=True)
class Group:
    """All types with a first word in common, and each of them."""

    all: Choice
    each: tuple[Choice, ...]


def _group(word: str, types: Iterable[EventType]) -> Group:
    every = Choice(f"{word}.*", f"Whatever happens to {word}s")
    return Group(every, tuple(Choice(one.name, one.description) for one in types))


def _first_word(event_type: EventType) -> str:
    return event_type.name.split(".")[0]


SUBSCRIBABLE = [one for one in CATALOGUE if one.subscribable]
GROUPS: Final = tuple(_group(*one) for one in groupby(SUBSCRIBABLE, key=_first_word))
OFFERED: Final = {
    WILDCARD: EVERYTHING,
    **{choice.name: choice.words for group in GROUPS for choice in (group.all, *group.each)},
}
ADDRESSED: Final = {one.name for one in CATALOGUE if not one.subscribable}


def told(subscriptions: Iterable[str]) -> list[Choice]:
    """What an endpoint is told of, in words."""
    return [Choice(one, _words(one)) for one in subscriptions]


def _words(subscription: str) -> str:
    if subscription in OFFERED:
        return OFFERED[subscription]
    if subscription in ADDRESSED:
        return "Sent to the endpoint that it concerns only: a subscription brings nothing"
    if subscription.endswith(WILDCARD):
        return f"Every type that begins with {subscription[:-1]}"
    return "Events of this type, told through the API"


class Picker(forms.Widget):
    """Boxes for what is offered, and a line for the rest."""

    use_fieldset = True

    def value_from_datadict(
        self, data: Mapping[str, Any], files: MultiValueDict[str, Any], name: str
    ) -> list[str]:
        boxes = data.getlist(name) if isinstance(data, MultiValueDict) else data.get(name, [])
        return [*boxes, *split(data.get(f"{name}_other", ""))]

    def render(
        self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None
    ) -> SafeString:
        chosen = list(value or [])
        context = {
            "name": name,
            "id": (attrs or {}).get("id", f"id_{name}"),
            "chosen": chosen,
            "everything": Choice(WILDCARD, EVERYTHING),
            "groups": GROUPS,
            "other": ", ".join(one for one in chosen if one not in OFFERED),
        }
        return loader.render_to_string("endpoints/_subscriptions.html", context)


class HiddenTypes(forms.HiddenInput):
    """The types that a form was made with."""

    def format_value(self, value: Any) -> str:
        return value if isinstance(value, str) else ", ".join(value or [])


class SubscriptionsField(forms.Field):
    """What an endpoint is told of: a list without order and repetition."""

    widget = Picker
    hidden_widget = HiddenTypes

    def to_python(self, value: Any) -> list[str]:
        types = split(value) if isinstance(value, str) else list(value or [])
        return list(dict.fromkeys(types))

    def has_changed(self, initial: Any, data: Any) -> bool:
        return set(self.to_python(initial)) != set(self.to_python(data))


def split(text: str) -> list[str]:
    """Types as people write them: commas, spaces or lines between them."""
    return [one for one in SEPARATORS.split(text) if one]
