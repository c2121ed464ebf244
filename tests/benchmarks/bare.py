"""What the machine can do without an engine: plain posts from as many processes and threads.

``measure`` runs ``python -m tests.benchmarks.bare`` once a process. Nothing is stored, signed, checked
or bounded there; the same bytes and headers go to the same receiver.
"""

from __future__ import annotations

import http.client
import itertools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

import requests

from tests.benchmarks.figures import BenchmarkFailed

Post = Callable[[], int]


@dataclass(frozen=True)
class Order:
    """What one process shall post."""

    kind: str  # requests or http.client
    url: str
    headers: dict[str, str]
    body: str
    threads: int
    posts: int


@dataclass(frozen=True)
class Posted:
    """What came of it: from the first process to begin to the last to end."""

    per_second: float
    cpu_ms: float  # of the posting processes, for one post


def measure(orders: list[Order]) -> Posted:
    """Post, with one process an order."""
    posting = [_start(order) for order in orders]
    try:
        for process in posting:  # each has imported what it needs
            if _line(process) != "ready":
                raise BenchmarkFailed("A process of bare posts did not start.")
        for process in posting:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
        results = [json.loads(_line(process)) for process in posting]
    finally:
        for process in posting:
            process.kill()
            process.communicate()
    if failures := sum(result["failures"] for result in results):
        raise BenchmarkFailed(f"{failures} bare posts failed.")
    seconds: float = max(r["ended"] for r in results) - min(r["began"] for r in results)
    posts = sum(order.posts for order in orders)
    return Posted(posts / seconds, sum(r["cpu"] for r in results) * 1000 / posts)


def _start(order: Order) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.benchmarks.bare"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdin
    process.stdin.write(json.dumps(asdict(order)) + "\n")
    process.stdin.flush()
    return process


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


# --- In the process that posts --------------------------------------------------------------------


def main() -> None:
    order = Order(**json.loads(sys.stdin.readline()))
    turns = itertools.count()
    failures: list[int] = []

    def post_on() -> None:
        post = POSTERS[order.kind](order)
        while next(turns) < order.posts:
            if (status := post()) != http.HTTPStatus.OK:
                failures.append(status)

    threads = [threading.Thread(target=post_on, daemon=True) for _ in range(order.threads)]
    print("ready", flush=True)
    sys.stdin.readline()
    began, cpu = time.monotonic(), time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    result = {
        "began": began,
        "ended": time.monotonic(),
        "cpu": time.process_time() - cpu,
        "failures": len(failures),
    }
    print(json.dumps(result), flush=True)


def _with_requests(order: Order) -> Post:
    session, body = requests.Session(), order.body.encode()
    return lambda: session.post(order.url, data=body, headers=order.headers).status_code


def _with_http_client(order: Order) -> Post:
    url, body = urlsplit(order.url), order.body.encode()
    connection = http.client.HTTPConnection(url.hostname or "", url.port)

    def post() -> int:
        connection.request("POST", url.path, body, order.headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status

    return post


POSTERS: dict[str, Callable[[Order], Any]] = {
    "requests": _with_requests,
    "http.client": _with_http_client,
}


if __name__ == "__main__":
    main()
