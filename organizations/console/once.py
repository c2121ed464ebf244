"""A form works once: the second click, the reload and "back" do nothing more.

What has no name of its own to be recognised by (an endpoint, a dataset) carries a token that the form
was made with. The first submission takes it; what it made is remembered for those that follow.
"""

from __future__ import annotations

import secrets

from django.core.cache import cache

# A form that stood open longer than a day is submitted as a new one.
KEPT_S = 86_400


def new_token() -> str:
    return secrets.token_urlsafe(16)


def take(token: str) -> bool:
    """True for the first who comes with this token, also among several at once."""
    return cache.add(_key(token), "", KEPT_S)


def give_back(token: str) -> None:
    """The form was refused: it may be submitted again."""
    cache.delete(_key(token))


def remember(token: str, page: str) -> None:
    """What the form made is shown on this page."""
    cache.set(_key(token), page, KEPT_S)


def recall(token: str) -> str:
    """The page of what the form made; empty while the first submission is still at work."""
    page: str = cache.get(_key(token), "")
    return page


def _key(token: str) -> str:
    return f"form:{token[:64]}"
