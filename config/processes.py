"""The processes of a Procfile: started together, heard together, stopped one after the other.

They stop from the last line of the Procfile to the first, each before the one above it gets its signal:
what a process relies on is written above it. So a delivery on the wire still finds its receiver, and the
receiver's report still finds the web server.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

LINE = re.compile(r"^([A-Za-z0-9_-]+):\s*(.+)$", re.MULTILINE)
LOOK_EVERY_S = 0.05
PR_SET_CHILD_SUBREAPER = 36


class ProcessEnded(Exception):
    """A process ended that should run for as long as the others."""


def read_procfile(path: Path) -> dict[str, str]:
    """Shell commands by name, in the file's order."""
    return dict(LINE.findall(path.read_text()))


class Processes:
    def __init__(self, commands: Mapping[str, str], environment: Mapping[str, str]) -> None:
        self._commands = commands
        self._environment = environment
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._readers: list[threading.Thread] = []

    def start(self) -> None:
        for name, command in self._commands.items():
            # A session of its own: Ctrl-C is for the supervisor, which stops them in order. And no
            # shell that stays in between: it would be gone at once and its child still stopping.
            process = self._running[name] = subprocess.Popen(
                f"exec {command}",
                shell=True,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            reader = threading.Thread(target=self._relay, args=(name, process), daemon=True)
            reader.start()
            self._readers.append(reader)

    def check(self) -> None:
        """Raise :class:`ProcessEnded` if one is gone."""
        for name, process in self._running.items():
            code = process.poll()
            if code is not None:
                how = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
                raise ProcessEnded(f"{name} ended ({how}); its last words are above.")

    def wait(self, until: Callable[[], bool] = lambda: False) -> None:
        """Return when ``until`` says so; raise :class:`ProcessEnded` as soon as one is gone."""
        while not until():
            self.check()
            time.sleep(LOOK_EVERY_S)

    def stop(self, grace_s: float) -> None:
        """Ask all to end, last one first; kill what is still there after ``grace_s`` seconds."""
        deadline = time.monotonic() + grace_s
        for process in reversed(self._running.values()):
            _signal_group(process, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
        for process in self._running.values():
            _signal_group(process, signal.SIGKILL)
            process.wait()
        for reader in self._readers:
            reader.join(0.2)

    def _relay(self, name: str, process: subprocess.Popen[bytes]) -> None:
        width = max(map(len, self._commands))
        assert process.stdout is not None
        with process.stdout:
            for line in process.stdout:
                say(f"{name:{width}} | {line.decode(errors='replace').rstrip()}")


def say(text: str) -> None:
    """Print a line, and go on in silence when nobody listens any more (a closed terminal or pipe)."""
    sys.stdout.flush()
    data = f"{text}\n".encode()
    try:
        while data:
            data = data[os.write(1, data) :]
    except OSError:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        os.close(silence)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent dies, so that none gets away (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill_descendants() -> None:
    """Kill every process that descends from this one, in whatever session it is (Linux only)."""
    while left := list(_descendants(os.getpid())):
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, 0):
                pass


def _descendants(ancestor: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            # pid (name) state ppid …: the name may hold spaces and brackets
            parent = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    waiting = [ancestor]
    while waiting:
        found = children.get(waiting.pop(), [])
        yield from found
        waiting.extend(found)


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)
