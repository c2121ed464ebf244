"""What a machine may lack: a person's tests go on without it, CI's never do."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(what: str, remedy: str) -> NoReturn:
    """Skip the test and say what to run; in CI (``CI=true``) fail it, where nothing may be left out."""
    end = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
    end(f"There is no {what}: {remedy}")
