"""What Linux tells of processes and of the machine."""

from __future__ import annotations

import os
import platform
import statistics
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
GONE = (FileNotFoundError, ProcessLookupError)
FSYNCS = 100


def descendants(ancestor: int) -> list[int]:
    """Every living process below this one."""
    found = list(_children(ancestor))
    for pid in found:
        found.extend(_children(pid))
    return found


def _children(pid: int) -> Iterator[int]:
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(*GONE):
            yield from map(int, task.read_text().split())


def name_of(pid: int) -> str:
    with suppress(*GONE):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def cpu_seconds(pids: Iterable[int]) -> float:
    """CPU time that these processes have used, in seconds, to a hundredth each."""
    ticks = 0
    for pid in pids:
        with suppress(*GONE):
            # pid (name) state ppid … utime stime: the name may hold spaces and brackets
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / TICKS_A_SECOND


def resident_mb(pid: int) -> float:
    """Resident memory in MB, pages that are shared with others included."""
    with suppress(*GONE):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
    return 0.0


def facts(folder: Path) -> dict[str, str]:
    """What one must know of the machine to read the figures; ``folder`` is where the database is."""
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GB",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "fsync": f"{fsync_ms(folder):.2f} ms at the median",
        "load before": f"{os.getloadavg()[0]:.1f}",
    }


def fsync_ms(folder: Path) -> float:
    """How long the disk takes to say that a page is safe, median in milliseconds."""
    with tempfile.TemporaryFile(dir=folder) as file:
        took = []
        for _ in range(FSYNCS):
            os.pwrite(file.fileno(), os.urandom(8192), 0)
            began = time.perf_counter()
            os.fsync(file.fileno())
            took.append(time.perf_counter() - began)
    return statistics.median(took) * 1000


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
