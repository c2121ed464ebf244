"""Signing secrets and owners' headers at rest: encrypted with the first key of the settings, readable
with any of them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class SecretUnreadable(Exception):
    """What is stored cannot be decrypted with any key in SECRETS_ENCRYPTION_KEYS."""


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


def encrypt_headers(headers: Mapping[str, str]) -> str:
    """The form in which headers are stored: all of them in one, empty where there are none."""
    return encrypt(json.dumps(dict(headers))) if headers else ""


def decrypt_headers(ciphertext: str) -> Mapping[str, str]:
    """The headers behind what is stored. Raises SecretUnreadable."""
    if not ciphertext:
        return _NO_HEADERS
    headers: dict[str, str] = json.loads(decrypt(ciphertext))
    return headers


def encrypt_anew(ciphertext: str) -> str:
    """The same with the first key; unchanged where that key wrote it. Raises SecretUnreadable."""
    try:
        Fernet(settings.SECRETS_ENCRYPTION_KEYS[0]).decrypt(ciphertext.encode())
    except InvalidToken:
        return encrypt(decrypt(ciphertext))
    return ciphertext


@functools.cache
def _cipher() -> MultiFernet:
    return MultiFernet([Fernet(key) for key in settings.SECRETS_ENCRYPTION_KEYS])
