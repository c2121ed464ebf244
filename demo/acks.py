"""Reports to the console what became of a command, as an integrator would: after its 200."""

from __future__ import annotations

import logging
import queue
import threading
import time
from dataclasses import dataclass

import requests

from demo.behaviours import Acknowledgement
from demo.seeded import DemoFile

logger = logging.getLogger("demo.receiver")

# A console that restarts is back within seconds; after that the command's deadline decides.
RETRY_DELAYS_S = (0.1, 0.3, 1.0, 3.0, 5.0)
REPORT_TIMEOUT_S = 10


@dataclass(frozen=True)
class Report:
    command_id: str
    acknowledgement: Acknowledgement


@dataclass(frozen=True)
class Reply:
    """What the console said to a report, and whether asking again could change it."""

    text: str
    final: bool


class Reporter:
    """Background threads that post reports to `POST /api/commands/ack`.

    A report is tried again while the console has not heard of the attempt yet (`not_delivered`),
    fails (5xx) or does not answer; any other answer is final.
    """

    def __init__(
        self,
        console_url: str,
        demo_file: DemoFile,
        *,
        threads: int = 4,
        delays: tuple[float, ...] = RETRY_DELAYS_S,
    ) -> None:
        self._url = f"{console_url}/api/commands/ack"
        self._demo_file = demo_file
        self._delays = delays
        self._reports: queue.SimpleQueue[Report] = queue.SimpleQueue()
        for number in range(threads):
            threading.Thread(target=self._work, name=f"reporter-{number}", daemon=True).start()

    def submit(self, report: Report) -> None:
        self._reports.put(report)

    def _work(self) -> None:
        session = requests.Session()
        session.trust_env = False
        while True:
            self._deliver(session, self._reports.get())

    def _deliver(self, session: requests.Session, report: Report) -> None:
        for delay in (0.0, *self._delays):
            time.sleep(delay)
            reply = self._post(session, report)
            if reply.final:
                break
        logger.info(
            "report %s for command %s: %s%s",
            report.acknowledgement.outcome,
            report.command_id,
            reply.text,
            "" if reply.final else ", given up",
        )

    def _post(self, session: requests.Session, report: Report) -> Reply:
        organization = self._demo_file.current()
        if organization is None:
            return Reply("no API key known yet", final=False)
        body = {
            "commandId": report.command_id,
            "outcome": report.acknowledgement.outcome,
            "detail": report.acknowledgement.detail,
        }
        key = organization.api_keys.get("operator", "")
        try:
            response = session.post(
                self._url, json=body, headers={"x-api-key": key}, timeout=REPORT_TIMEOUT_S
            )
        except requests.RequestException as problem:
            return Reply(type(problem).__name__, final=False)
        return _reply(response)


def _reply(response: requests.Response) -> Reply:
    code = _problem_code(response)
    try_again = response.status_code >= 500 or code == "not_delivered"
    return Reply(f"{response.status_code} {code}".strip(), final=not try_again)


def _problem_code(response: requests.Response) -> str:
    try:
        return str(response.json().get("code", "")) if response.status_code >= 400 else ""
    except (ValueError, AttributeError):
        return ""
