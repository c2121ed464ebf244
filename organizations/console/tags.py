"""What the console's templates are built from: icons, times, permissions, untrusted text."""

from __future__ import annotations

from datetime import datetime

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from organizations.actors import Actor
from organizations.console import words

register = template.Library()


@register.simple_tag
def icon(name: str, modifier: str = "") -> SafeString:
    """A picture from the sprite. It says nothing that the words beside it do not."""
    return format_html(
        '<svg class="icon {}" aria-hidden="true" focusable="false"><use href="{}#{}"></use></svg>',
        modifier,
        static("console/icons.svg"),
        name,
    )


@register.simple_tag(takes_context=True)
def ago(context: template.Context, at: datetime | None) -> SafeString:
    """How long ago, kept up to date by the page, with the absolute time at hand."""
    if at is None:
        return format_html("{}", "—")
    return format_html(
        '<time datetime="{}" title="{}" data-ago>{}</time>',
        at.isoformat(),
        words.in_full(at),
        words.ago(at, context["request"].now),
    )


@register.simple_tag(takes_context=True)
def countdown(
    context: template.Context, until: datetime, past: str, modifier: str = ""
) -> SafeString:
    """What is left until then, counted down by the page; ``past`` is said when nothing is."""
    return format_html(
        '<span role="timer" class="countdown {}" title="{}" data-until="{}" data-past="{}">{}</span>',
        modifier,
        words.in_full(until),
        until.isoformat(),
        past,
        words.countdown(until, context["request"].now) or past,
    )


@register.filter
def clock(at: datetime) -> str:
    """The time of day: ``09:30:00 UTC``."""
    return words.clock(at)


@register.filter
def absolute(at: datetime) -> str:
    """The date and the time of day: ``2026-01-31 09:30:00 UTC``."""
    return words.absolute(at)


@register.filter
def span(seconds: float) -> str:
    return words.span(seconds)


@register.filter
def milliseconds(value: int) -> str:
    return words.milliseconds(value)


@register.filter
def inert(text: object) -> str:
    """Somebody else's text, which neither acts on its surroundings nor hides anything."""
    return words.inert(str(text))


@register.filter
def may(actor: Actor, permission: str) -> bool:
    return actor.may(permission)
