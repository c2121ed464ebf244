"""Real sockets around the receiver: a tiny console that hears reports, and a sender that signs."""

from __future__ import annotations

import json
import queue
from collections.abc import Callable
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import requests
from standardwebhooks import Webhook

from demo.behaviours import BEHAVIOURS
from demo.receiver import ReceiverServer

SECRET = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
OPERATOR_KEY = "key-of-the-operator"
WAIT_S = 10


class FakeConsole(ThreadingHTTPServer):
    """Hears reports at `/api/commands/ack`; answers with `script` in turn, then with 200."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), FakeConsoleHandler)
        self.script: queue.SimpleQueue[tuple[int, dict[str, Any]]] = queue.SimpleQueue()
        self.reports: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.url = f"http://127.0.0.1:{self.server_port}"

    def next_report(self) -> dict[str, Any]:
        return self.reports.get(timeout=WAIT_S)


class FakeConsoleHandler(BaseHTTPRequestHandler):
    server: FakeConsole

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.headers.get("x-api-key")
        self.server.reports.put({"path": self.path, "key": key, **body})
        empty = self.server.script.empty()
        status, answer = (200, {}) if empty else self.server.script.get_nowait()
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


class Sender:
    """Posts deliveries to a receiver as the console would."""

    def __init__(self, server: ReceiverServer) -> None:
        self.url = server.url
        self.session = requests.Session()
        self.session.trust_env = False

    def post(
        self,
        behaviour: str,
        command_id: str = "command-1",
        *,
        attempt: int = 1,
        webhook_id: str | None = None,
        change: Callable[[dict[str, str]], None] | None = None,
        body: bytes | None = None,
        timeout: float = WAIT_S,
    ) -> requests.Response:
        """`change` may spoil the headers after the body was signed."""
        body = command_body(command_id) if body is None else body
        headers = signed_headers(body, webhook_id or f"msg_{command_id}", attempt)
        if change is not None:
            change(headers)
        return self.session.post(
            f"{self.url}/{behaviour}",
            data=body,
            headers=headers,
            allow_redirects=False,
            timeout=timeout,
        )

    def requests_of(self, command_id: str) -> list[dict[str, Any]]:
        url = f"{self.url}/requests"
        entries: list[dict[str, Any]] = self.session.get(
            url, params={"commandId": command_id}, timeout=WAIT_S
        ).json()
        return entries


def command_body(command_id: str) -> bytes:
    command = {"id": command_id, "name": "goto-waypoint", "parameters": {"place": "café"}}
    return json.dumps({"type": "command.dispatch", "command": command}).encode()


def signed_headers(body: bytes, webhook_id: str, attempt: int) -> dict[str, str]:
    now = datetime.now(UTC)
    return {
        "Content-Type": "application/json",
        "webhook-id": webhook_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(SECRET).sign(webhook_id, now, body.decode()),
        "X-Webhook-Attempt": str(attempt),
    }


def write_demo_file(path: Path, secret: str = SECRET) -> None:
    endpoints = {
        name: {"id": f"endpoint-{name}", "url": f"http://127.0.0.1:1/{name}", "secret": secret}
        for name in BEHAVIOURS
    }
    seeded = {
        "apiKeys": {"operator": OPERATOR_KEY},
        "endpoints": endpoints,
        "datasets": {name: f"dataset-{name}" for name in BEHAVIOURS},
    }
    path.write_text(json.dumps(seeded))
