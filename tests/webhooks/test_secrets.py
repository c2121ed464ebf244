"""Signing secrets at rest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cryptography.fernet import Fernet
from pytest_django import Settings

from tests.factories import Scene
from webhooks import secrets
from webhooks.models import EndpointSecret
from webhooks.rules import signing
from webhooks.secrets import SecretUnreadable

OLD, NEW, FOREIGN = (Fernet.generate_key().decode() for _ in range(3))


def use_keys(settings: Settings, *keys: str) -> None:
    """Restart with these keys, as far as this module is concerned."""
    settings.SECRETS_ENCRYPTION_KEYS = list(keys)
    forget()


def forget() -> None:
    secrets._cipher.cache_clear()
    secrets.decrypt.cache_clear()


@pytest.fixture(autouse=True)
def _forget_keys() -> Iterator[None]:
    yield
    forget()


def test_a_secret_comes_back_as_it_was() -> None:
    secret = signing.new_secret()

    assert secrets.decrypt(secrets.encrypt(secret)) == secret


def test_what_is_stored_does_not_show_the_secret(scene: Scene) -> None:
    ciphertext = EndpointSecret.objects.get(endpoint=scene.endpoint).ciphertext
    secret = secrets.decrypt(ciphertext)

    assert secret.startswith("whsec_")
    assert secret.removeprefix("whsec_") not in ciphertext


def test_the_same_secret_is_stored_differently_each_time() -> None:
    assert secrets.encrypt("whsec_x") != secrets.encrypt("whsec_x")


def test_a_new_key_in_front_reads_what_the_old_one_wrote(settings: Settings) -> None:
    use_keys(settings, OLD)
    stored = secrets.encrypt("whsec_x")

    use_keys(settings, NEW, OLD)

    assert secrets.decrypt(stored) == "whsec_x"
    use_keys(settings, NEW)
    with pytest.raises(SecretUnreadable):
        secrets.decrypt(stored)


def test_the_first_key_encrypts(settings: Settings) -> None:
    use_keys(settings, NEW, OLD)
    stored = secrets.encrypt("whsec_x")

    use_keys(settings, NEW)

    assert secrets.decrypt(stored) == "whsec_x"


def test_what_no_key_reads_is_refused_without_a_word_of_it() -> None:
    for ciphertext in ("", "whsec_x", Fernet(FOREIGN).encrypt(b"whsec_x").decode()):
        with pytest.raises(SecretUnreadable) as refusal:
            secrets.decrypt(ciphertext)

        assert str(refusal.value) == ""
        assert refusal.value.__cause__ is None
