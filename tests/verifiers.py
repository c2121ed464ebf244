"""Receivers that verify deliveries with the public Standard Webhooks libraries, each in its language."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from tests.missing import missing
from tests.receivers import ReceivedRequest

JAVASCRIPT = Path(__file__).parent / "javascript"
INSTALL = "npm install --prefix tests/javascript"


@dataclass(frozen=True)
class Case:
    """A request byte for byte as a socket received it, and the secret by which the receiver knows us."""

    request: ReceivedRequest
    secret: str


def in_python(cases: Sequence[Case]) -> list[bool]:
    """Which of them the Python library verifies."""
    return [_verified(case) for case in cases]


def _verified(case: Case) -> bool:
    try:
        Webhook(case.secret).verify(case.request.body, case.request.headers)
    except WebhookVerificationError:
        return False
    return True


def in_javascript(cases: Sequence[Case]) -> list[bool]:
    """Which of them the JavaScript library verifies, all in one process of Node."""
    node = which("node") or missing("Node", "install Node 20 or newer, with npm.")
    if not (JAVASCRIPT / "node_modules").is_dir():
        missing("JavaScript library", f"run `{INSTALL}`.")
    told = json.dumps([_as_json(case) for case in cases])
    answer = subprocess.run(
        [node, "verify.mjs"],
        cwd=JAVASCRIPT,
        input=told,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    found: list[bool] = json.loads(answer.stdout)
    return found


def _as_json(case: Case) -> dict[str, Any]:
    body = base64.b64encode(case.request.body).decode()
    return {"secret": case.secret, "headers": case.request.headers, "body": body}
