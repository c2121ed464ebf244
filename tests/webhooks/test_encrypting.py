"""The key that encrypts is changed: what was written with the old one is written anew."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from pytest_django import Settings

from tests.factories import Scene, new_scene
from tests.webhooks.test_secrets import forget, use_keys
from webhooks import endpoints, secrets
from webhooks.models import Endpoint, EndpointSecret

OLD, NEW, FOREIGN = (Fernet.generate_key().decode() for _ in range(3))


@pytest.fixture(autouse=True)
def _forget_keys() -> Iterator[None]:
    yield
    forget()


@pytest.fixture
def scene(db: None, settings: Settings) -> Scene:
    """Two secrets and a header, written with the old key."""
    use_keys(settings, OLD)
    scene = new_scene()
    endpoints.edit(scene.owner, scene.endpoint.pk, {"headers": {"X-Key": "confidential"}})
    endpoints.rotate_secret(scene.owner, scene.endpoint.pk)
    return scene


def reencrypt() -> str:
    output = StringIO()
    call_command("reencrypt_secrets", stdout=output)
    return output.getvalue()


def stored(scene: Scene) -> list[str]:
    rows = EndpointSecret.objects.filter(endpoint=scene.endpoint).order_by("pk")
    endpoint = Endpoint.objects.get(pk=scene.endpoint.pk)
    return [*rows.values_list("ciphertext", flat=True), endpoint.headers_ciphertext]


def test_everything_is_written_anew_and_the_old_key_may_go(
    scene: Scene, settings: Settings
) -> None:
    before = [secrets.decrypt(ciphertext) for ciphertext in stored(scene)]
    use_keys(settings, NEW, OLD)

    assert "3 written anew" in reencrypt()

    use_keys(settings, NEW)
    assert [secrets.decrypt(ciphertext) for ciphertext in stored(scene)] == before
    assert len(before) == 3


def test_a_second_time_nothing_is_left_to_do(scene: Scene, settings: Settings) -> None:
    use_keys(settings, NEW, OLD)
    reencrypt()
    once = stored(scene)

    assert reencrypt().startswith("0 written anew with the first key, 3 were")
    assert stored(scene) == once


def test_what_no_key_reads_is_counted_and_left(scene: Scene, settings: Settings) -> None:
    unreadable = Fernet(FOREIGN).encrypt(b"whsec_lost").decode()
    EndpointSecret.objects.filter(endpoint=scene.endpoint, expires_at=None).update(
        ciphertext=unreadable
    )
    use_keys(settings, NEW, OLD)

    with pytest.raises(CommandError, match="1 cannot be read"):
        reencrypt()

    assert unreadable in stored(scene)
    use_keys(settings, NEW)
    assert secrets.decrypt(stored(scene)[0])


def test_it_says_nothing_of_what_it_reads(
    scene: Scene, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    use_keys(settings, NEW, OLD)

    assert "confidential" not in reencrypt() + caplog.text
