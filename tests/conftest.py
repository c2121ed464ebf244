"""What every test may use: one organization at work, its people, and ways to make commands.

The fixtures are views of one ``scene``; a test that needs a second organization makes another with
``tests.factories.new_scene``. Nothing here speaks HTTP.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator

import pytest
from django.test import override_settings
from pytest_django import Settings

from commands.models import Command, Dataset
from organizations.actors import Actor
from organizations.models import Organization
from organizations.provisioning import Provisioned
from tests.factories import Scene, new_scene
from tests.flushing import flush_past_the_guards
from tests.plain_sql import Connection, plain_connection
from webhooks.models import Endpoint


@pytest.fixture(scope="session", autouse=True)
def _flushes_past_the_guards() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        flush_past_the_guards(patch)
        yield


@pytest.fixture(scope="session", autouse=True)
def _fast_passwords() -> Iterator[None]:
    """A password hash is slow on purpose, and each organization has three."""
    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]):
        yield


@pytest.fixture
def plain_static(settings: Settings) -> None:
    """Pages name static files as they are: nothing collected them for the tests."""
    plain = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": plain}}


@pytest.fixture
def loopback_allowed(settings: Settings) -> None:
    """Endpoints may be plain http on this machine, for tests with a receiver of their own."""
    settings.ENDPOINT_ALLOW_HTTP = True
    settings.ENDPOINT_ALLOWED_NETWORKS = (
        ipaddress.ip_network("127.0.0.0/8"),
        ipaddress.ip_network("::1/128"),
    )


@pytest.fixture
def scene(db: None) -> Scene:
    """An organization with people, an armed dataset and an endpoint for its commands."""
    return new_scene()


@pytest.fixture
def provisioned(scene: Scene) -> Provisioned:
    """The organization with the passwords and API keys of its people."""
    return scene.provisioned


@pytest.fixture
def organization(scene: Scene) -> Organization:
    return scene.organization


@pytest.fixture
def owner(scene: Scene) -> Actor:
    return scene.owner


@pytest.fixture
def operator(scene: Scene) -> Actor:
    return scene.operator


@pytest.fixture
def viewer(scene: Scene) -> Actor:
    return scene.viewer


@pytest.fixture
def dataset(scene: Scene) -> Dataset:
    """A dataset that is armed."""
    return scene.dataset


@pytest.fixture
def endpoint(scene: Scene) -> Endpoint:
    """The default endpoint, of policy ``command``."""
    return scene.endpoint


@pytest.fixture
def issued(scene: Scene) -> Callable[..., Command]:
    """``issued(token=…, name=…, **parameters)``: a command on record."""
    return scene.issued


@pytest.fixture
def dispatched(scene: Scene) -> Callable[..., Command]:
    """``dispatched(ack_timeout_s=…, …)``: a queued command."""
    return scene.dispatched


@pytest.fixture
def delivered(scene: Scene) -> Callable[..., Command]:
    """``delivered(…)``: a command that the receiver has taken."""
    return scene.delivered


@pytest.fixture
def sql(db: None) -> Connection:
    """A plain psycopg connection inside the test's transaction: no ORM, no service."""
    return plain_connection()
