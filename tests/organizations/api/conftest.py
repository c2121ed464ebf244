"""What tests of pages need here."""

from __future__ import annotations

import pytest
from pytest_django import Settings


@pytest.fixture
def plain_static_files(settings: Settings) -> None:
    """Pages name static files as they are, so that none has to be collected first."""
    plain = {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    settings.STORAGES = {**settings.STORAGES, "staticfiles": plain}
