"""Words for what the templates show of webhooks."""

from __future__ import annotations

from django import template

from webhooks.console import rows
from webhooks.rules.policies import Policy

register = template.Library()


@register.filter
def error_word(kind: str) -> str:
    """Why there was no answer, in a word or two."""
    return rows.ERROR_WORDS.get(kind, kind)


@register.filter
def schedule_in_words(policy: Policy) -> str:
    return rows.schedule_in_words(policy)


@register.filter
def percent(rate: float) -> str:
    """``97.5 %``; never rounded up to all, nor down to nothing."""
    if 0 < rate < 1:
        rate = min(max(rate, 0.001), 0.999)
    return f"{rate * 100:.1f}".removesuffix(".0") + " %"
