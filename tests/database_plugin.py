"""A throw-away PostgreSQL and data folder for the test run, ready before Django reads its settings.

pytest loads this with ``-p`` (see pyproject.toml): a conftest comes too late, because pytest-django
reads the settings first. Only the process that starts the run does anything: the workers inherit its
environment. With DATABASE_URL set, the tests use that server.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from config.database import EmbeddedPostgres


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config,
) -> Generator[None, object, object]:
    if not os.environ.get("PYTEST_XDIST_WORKER"):
        _provide(early_config)
    return (yield)


def _provide(config: pytest.Config) -> None:
    folder = Path(tempfile.mkdtemp(prefix="command-console-tests-"))
    folder.chmod(0o755)  # run as root, the server's account must pass
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    os.environ.setdefault("CONSOLE_DATA_DIR", str(folder))
    # Workers of the tests must never mail to the made-up people of the tests.
    os.environ.pop("EMAIL_URL", None)
    if os.environ.get("DATABASE_URL"):
        return
    database = EmbeddedPostgres(folder, durable=False)
    config.add_cleanup(database.stop)
    # A run that is told to end stops its server too, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    database.start()
    os.environ["DATABASE_URL"] = database.url
