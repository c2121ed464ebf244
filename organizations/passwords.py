"""An owner's password, asked again before an act that sends commands to vehicles.

Tries are counted: a session that was left open does not become a way to guess the password.
"""

from __future__ import annotations

from typing import Final

from django import forms
from django.core.cache import cache

from organizations.models import User

TRIES: Final = 5
PER_S: Final = 300


class TooManyTries(Exception):
    """Wait for five minutes, then try again."""


def is_right(user: User, password: str) -> bool:
    """Whether this is the user's password. Raises TooManyTries without having looked.

    Each try takes one of a few slots, which only one request gets, also among several at once; a wrong
    one keeps its slot until that expires.
    """
    slots = (f"password:{user.pk}:{number}" for number in range(TRIES))
    slot = next((slot for slot in slots if cache.add(slot, "", PER_S)), None)
    if slot is None:
        raise TooManyTries
    right = user.check_password(password)
    if right:
        cache.delete(slot)
    return right


def check_form(user: User, password: str) -> None:
    """What a form's field does with it: raises ValidationError in words, and keeps nothing of it."""
    try:
        right = is_right(user, password)
    except TooManyTries:
        raise forms.ValidationError(
            "Too many wrong passwords. Try again in five minutes."
        ) from None
    if not right:
        raise forms.ValidationError("This is not your password. Nothing was done.")
