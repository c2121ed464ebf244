"""The console as people meet it, on a throw-away database: its static files collected, its web server of
the Procfile. For what looks at pages from outside.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from config.database import EmbeddedPostgres
from config.processes import read_procfile
from tests.benchmarks.stage import PROJECT, Process, wait_until

START_TIMEOUT_S = 60.0


@contextlib.contextmanager
def prepared() -> Iterator[EmbeddedPostgres]:
    """An empty database with all of its tables, which Django here uses too, and the static files."""
    with contextlib.ExitStack() as at_the_end:
        folder = Path(tempfile.mkdtemp(prefix="command-console-pages-"))
        folder.chmod(0o755)  # run as root, the server's account must pass
        at_the_end.callback(shutil.rmtree, folder, ignore_errors=True)
        database = at_the_end.enter_context(EmbeddedPostgres(folder, durable=False))
        os.environ |= _environment(folder, database.url)
        _migrate()
        yield database


def _environment(folder: Path, database_url: str) -> dict[str, str]:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "DATABASE_URL": database_url,
        "CONSOLE_DATA_DIR": str(folder),
        "CONSOLE_PORT": str(port),
        "CONSOLE_URL": f"http://127.0.0.1:{port}",
        "LOG_LEVEL": "WARNING",
        "PATH": programs,
    }


def _migrate() -> None:
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", interactive=False, verbosity=0)
    call_command("createcachetable", verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)


@contextlib.contextmanager
def web() -> Iterator[str]:
    """The address of the web server, which is up."""
    url = os.environ["CONSOLE_URL"]
    line = read_procfile(PROJECT / "Procfile")["web"]
    log = Path(os.environ["CONSOLE_DATA_DIR"]) / "web.log"
    server = Process(["sh", "-c", f"exec {line}"], dict(os.environ), log)
    try:
        wait_until(lambda: _answers(server, url), START_TIMEOUT_S, "the web server answers")
        yield url
    finally:
        server.stop()


def _answers(server: Process, url: str) -> bool:
    server.check()
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
