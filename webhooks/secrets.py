"""Signing secrets at rest: encrypted with the first key of the settings, readable with any of them."""

from __future__ import annotations

import functools

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings


class SecretUnreadable(Exception):
    """A signing secret cannot be decrypted with any key in SECRETS_ENCRYPTION_KEYS."""


def encrypt(secret: str) -> str:
    """The form in which a secret is stored."""
    return _cipher().encrypt(secret.encode()).decode()


# Decrypting costs as much as a tenth of an attempt, and an endpoint's secret is used for each.
@functools.lru_cache(maxsize=4096)
def decrypt(ciphertext: str) -> str:
    """The secret behind what is stored. Raises SecretUnreadable."""
    try:
        return _cipher().decrypt(ciphertext.encode()).decode()
    except InvalidToken:
        raise SecretUnreadable from None


@functools.cache
def _cipher() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.SECRETS_ENCRYPTION_KEYS])
