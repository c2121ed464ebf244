"""Words for what the templates show of webhooks."""

from __future__ import annotations

from django import template
from django.urls import reverse

from webhooks.console import attempts, rows
from webhooks.models import Attempt, Delivery
from webhooks.rules.policies import Policy

register = template.Library()


@register.filter
def error_word(kind: str) -> str:
    """Why there was no answer, in a word or two."""
    return rows.ERROR_WORDS.get(kind, kind)


@register.filter
def came_of(attempt: Attempt) -> str:
    return attempts.came_of(attempt)


@register.filter
def page_of(delivery: Delivery) -> str:
    """Where a delivery is shown: a command's on the page of its command."""
    if delivery.command_id:
        return reverse("command", args=[delivery.command_id])
    return reverse("delivery", args=[delivery.pk])


@register.filter
def schedule_in_words(policy: Policy) -> str:
    return rows.schedule_in_words(policy)


@register.filter
def percent(rate: float) -> str:
    """``97.5 %``; never rounded up to all, nor down to nothing."""
    if 0 < rate < 1:
        rate = min(max(rate, 0.001), 0.999)
    return f"{rate * 100:.1f}".removesuffix(".0") + " %"
