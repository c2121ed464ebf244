"""The embedded PostgreSQL on real folders, real processes and real sockets."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import environ
import psycopg
import pytest

from config.database import DatabaseUnavailable, EmbeddedPostgres
from config.premises import LONGEST_SOCKET_PATH

AS_ROOT = os.geteuid() == 0
PROJECT = Path(__file__).resolve().parents[2]

Embedded = Callable[[Path], EmbeddedPostgres]


@pytest.fixture
def embedded(place: Path) -> Iterator[Embedded]:
    """Make servers that are stopped and, wherever their files are, removed after the test."""
    made: list[EmbeddedPostgres] = []

    def make(data_dir: Path) -> EmbeddedPostgres:
        made.append(EmbeddedPostgres(data_dir))
        return made[-1]

    yield make
    for database in made:
        homes = [database.files.home, database.files.socket.parent]
        database.stop()
        for folder in homes:
            shutil.rmtree(folder, ignore_errors=True)


def run_sql(database: EmbeddedPostgres, *statements: str) -> list[tuple[object, ...]]:
    """Run statements in one committed transaction; the rows of the last one."""
    with psycopg.connect(database.url) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def remember(database: EmbeddedPostgres, note: str) -> None:
    run_sql(
        database,
        "CREATE TABLE IF NOT EXISTS notes (note text)",
        f"INSERT INTO notes VALUES ('{note}')",
    )


def remembered(database: EmbeddedPostgres) -> list[tuple[object, ...]]:
    return run_sql(database, "SELECT note FROM notes")


def pid_file(database: EmbeddedPostgres) -> Path:
    return database.files.cluster / "postmaster.pid"


def server_pid(database: EmbeddedPostgres) -> int:
    return int(pid_file(database).read_text().splitlines()[0])


def kill_9(database: EmbeddedPostgres) -> None:
    """Kill the server and leave its dead process unreaped: its pid is still taken."""
    pid = server_pid(database)
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def modes_above(folder: Path) -> dict[Path, tuple[int, int, int]]:
    """Mode and owner of every folder on the way to this one."""
    found = {path: path.stat() for path in folder.parents}
    return {path: (s.st_mode, s.st_uid, s.st_gid) for path, s in found.items()}


def command_line(data_dir: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "config.database", *arguments],
        cwd=PROJECT,
        env={**os.environ, "CONSOLE_DATA_DIR": str(data_dir)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_committed_data_survives_a_stop_and_a_start(place: Path, embedded: Embedded) -> None:
    with embedded(place / "data") as database:
        remember(database, "kept")
    assert not database.is_running()

    with embedded(place / "data") as again:
        assert remembered(again) == [("kept",)]


def test_committed_data_survives_kill_9_of_the_server(place: Path, embedded: Embedded) -> None:
    database = embedded(place / "data")
    database.start()
    remember(database, "kept")

    kill_9(database)
    again = embedded(place / "data")
    again.start()

    assert remembered(again) == [("kept",)]


def test_a_pid_file_that_names_a_stranger_is_no_obstacle(place: Path, embedded: Embedded) -> None:
    database = embedded(place / "data")
    database.start()
    remember(database, "kept")
    kill_9(database)
    stranger = subprocess.Popen(["sleep", "60"], **database.files.account.arguments)
    lines = pid_file(database).read_text().splitlines()
    pid_file(database).write_text("\n".join([str(stranger.pid), *lines[1:], ""]))

    try:
        assert not database.is_running()
        database.stop()
        database.start()
        assert remembered(database) == [("kept",)]
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_running_server_whose_socket_was_removed_is_restarted(
    place: Path, embedded: Embedded
) -> None:
    database = embedded(place / "data")
    database.start()
    remember(database, "kept")
    shutil.rmtree(database.files.socket.parent)

    assert not database.is_running()
    database.start()

    assert remembered(database) == [("kept",)]


def test_of_two_starters_one_starts_and_the_other_finds_it_running(
    place: Path, embedded: Embedded
) -> None:
    database = embedded(place / "data")

    starters = [command_line(place / "data", "start") for _ in range(2)]
    outputs = [starter.communicate() for starter in starters]

    assert [starter.returncode for starter in starters] == [0, 0], outputs
    assert database.is_running()
    assert database.files.log.read_text().count("starting PostgreSQL") == 1


def test_starting_twice_changes_nothing(place: Path, embedded: Embedded) -> None:
    database = embedded(place / "data")
    database.start()
    first = server_pid(database)

    database.start()

    assert server_pid(database) == first


@pytest.mark.parametrize(
    "name",
    [
        "data",
        "with space+plus",
        "per%20cent&amp=1;#?",
        "Ünïcode'quote\"s",
        "a,comma",  # libpq would read two hosts
        "d" * 120,  # the socket would not fit here
    ],
)
def test_django_and_libpq_reach_the_server_by_the_same_address(
    place: Path, embedded: Embedded, name: str
) -> None:
    database = embedded(place / name)
    before_start = database.url
    database.start()
    assert database.url == before_start

    django = environ.Env.db_url_config(database.url)
    with psycopg.connect(
        dbname=django["NAME"],
        user=django["USER"],
        port=django["PORT"],
        **django["OPTIONS"],
    ) as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("console",)
    assert django["ENGINE"] == "django.db.backends.postgresql"
    assert run_sql(database, "SELECT current_database()") == [("console",)]


def test_a_deep_clone_gets_a_short_private_socket_folder(place: Path, embedded: Embedded) -> None:
    deep = place / "/".join(["deep" * 10] * 4)
    database = embedded(deep)

    with database:
        remember(database, "kept")
        folder = database.files.socket.parent
        found = folder.stat()

        assert len(os.fsencode(deep)) > LONGEST_SOCKET_PATH >= len(os.fsencode(folder))
        assert stat.S_IMODE(found.st_mode) == 0o700
        assert found.st_uid == database.files.account.uid
        assert database.files.cluster.is_relative_to(deep)
    assert not folder.exists()


def occupy_with_an_open_folder(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)


def occupy_with_a_link(folder: Path) -> None:
    elsewhere = folder.parent / f"{folder.name}-elsewhere"
    elsewhere.mkdir(mode=0o700)
    folder.symlink_to(elsewhere)


def occupy_as_another_account(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    os.chown(folder, 1, 1)


SQUATTERS = [occupy_with_an_open_folder, occupy_with_a_link]
if AS_ROOT:
    SQUATTERS.append(occupy_as_another_account)


@pytest.mark.parametrize("occupy", SQUATTERS)
def test_a_socket_folder_that_somebody_else_made_is_refused(
    place: Path, embedded: Embedded, occupy: Callable[[Path], None]
) -> None:
    database = embedded(place / "data")
    database.files.make_home()
    occupy(database.files.socket.parent)

    with pytest.raises(DatabaseUnavailable, match=r"not a private folder of .*: remove it"):
        database.start()


def test_a_client_refuses_a_server_of_another_account(place: Path, embedded: Embedded) -> None:
    with embedded(place / "data") as database:
        account = database.files.account.name
        forged = database.url.replace(f"requirepeer={account}", "requirepeer=somebody-else")

        with pytest.raises(psycopg.OperationalError, match="requirepeer"):
            psycopg.connect(forged)


def test_the_server_is_durable_private_and_speaks_utc_and_utf8(
    place: Path, embedded: Embedded
) -> None:
    with embedded(place / "data") as database:
        names = ["fsync", "synchronous_commit", "full_page_writes"]
        names += ["listen_addresses", "timezone", "server_encoding"]

        values = [run_sql(database, f"SHOW {name}")[0][0] for name in names]
        superuser = run_sql(database, "SELECT rolsuper FROM pg_roles WHERE rolname = current_user")

        assert values == ["on", "on", "on", "", "UTC", "UTF8"]
        assert superuser == [(False,)]
        assert run_sql(database, "SELECT upper('é')") == [("É",)]
        assert stat.S_IMODE(database.files.log.stat().st_mode) == 0o600


def test_a_closed_home_stays_closed_and_works(tmp_path: Path, embedded: Embedded) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    data_dir = home / "clone" / "var"
    data_dir.mkdir(parents=True)
    before = modes_above(data_dir / "postgres")

    with embedded(data_dir) as database:
        remember(database, "kept")
        home_of_data = database.files.home
    with embedded(data_dir) as again:
        assert remembered(again) == [("kept",)]

    assert modes_above(data_dir / "postgres") == before
    assert (home_of_data == data_dir / "postgres") is not AS_ROOT


def test_an_open_home_keeps_its_modes_too(place: Path, embedded: Embedded) -> None:
    data_dir = place / "clone" / "var"
    data_dir.mkdir(parents=True)
    before = modes_above(data_dir / "postgres")

    with embedded(data_dir) as database:
        assert database.files.home == data_dir / "postgres"

    assert modes_above(data_dir / "postgres") == before


def test_a_data_folder_that_cannot_be_made_is_one_line(place: Path, embedded: Embedded) -> None:
    (place / "file").touch()

    with pytest.raises(DatabaseUnavailable) as refusal:
        embedded(place / "file" / "data").start()

    assert str(refusal.value).startswith("Cannot start PostgreSQL: Not a directory")
    assert "CONSOLE_DATA_DIR" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_damaged_data_is_refused_with_postgresqls_own_reason(
    place: Path, embedded: Embedded
) -> None:
    with embedded(place / "data") as database:
        version = database.files.cluster / "PG_VERSION"
    version.write_text("12\n")

    with pytest.raises(DatabaseUnavailable, match=r"incompatible with server .*postgres.log"):
        database.start()


def test_the_command_line_starts_tells_and_stops(place: Path, embedded: Embedded) -> None:
    database = embedded(place / "data")

    def run(action: str, *arguments: str) -> tuple[int, str]:
        process = command_line(place / "data", action, *arguments)
        output, _ = process.communicate()
        return process.returncode, output.strip()

    assert run("status") == (3, "stopped")
    assert run("start") == (
        0,
        f"PostgreSQL runs; its data is in {database.files.cluster}",
    )
    assert run("status") == (0, "running")
    assert run("url") == (0, database.url)
    assert run("psql", "-Atc", "SELECT 40 + 2") == (0, "42")
    assert run("stop") == (0, "")
    assert run("status") == (3, "stopped")


if AS_ROOT:  # only root keeps its data outside of a folder that it owns

    def test_a_pointer_says_where_the_data_of_a_closed_home_is(
        tmp_path: Path, embedded: Embedded
    ) -> None:
        with embedded(tmp_path / "var") as database:
            said = (tmp_path / "var" / "postgres.location").read_text().strip()
        assert database.files.cluster == Path(said) / "cluster"
        assert (Path(said) / "belongs-to").read_text().strip() == str(tmp_path / "var")

    def test_data_that_vanished_is_not_replaced_by_an_empty_database(
        tmp_path: Path, embedded: Embedded
    ) -> None:
        with embedded(tmp_path / "var") as database:
            pass
        shutil.rmtree(database.files.home)

        with pytest.raises(DatabaseUnavailable, match=r"is gone: put .* back, or delete that file"):
            database.start()

    def test_a_new_console_at_the_path_of_a_deleted_one_starts_empty_and_loses_nothing(
        tmp_path: Path, embedded: Embedded
    ) -> None:
        with embedded(tmp_path / "var") as deleted:
            remember(deleted, "of the deleted console")
        shutil.rmtree(tmp_path / "var")

        with embedded(tmp_path / "var") as database:
            assert run_sql(database, "SELECT to_regclass('notes')") == [(None,)]
            assert (database.files.home / "cluster.left-1" / "PG_VERSION").exists()
