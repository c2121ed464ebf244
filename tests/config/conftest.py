"""A folder like most on a machine; pytest's own are closed to other accounts, a case of its own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every account may pass through; PostgreSQL runs in it, started by root or not."""
    folder = Path(tempfile.mkdtemp(prefix="console-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)
