"""A small client of the console's API and of the demo receiver's request log."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import requests

TIMEOUT_S = 10


class Unreachable(Exception):
    """A server of the demo did not answer."""


class Refused(Exception):
    """The console answered with a problem; `code` says which."""

    def __init__(self, response: requests.Response) -> None:
        problem = _problem(response)
        self.status = response.status_code
        self.code = str(problem.get("code", ""))
        detail = problem.get("detail") or problem.get("title") or response.reason
        path = response.request.path_url
        super().__init__(f"{path} answered {self.status} {self.code}: {detail}")


class _Client:
    """Requests on one kept-alive connection, free of the environment's proxies."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._session = requests.Session()
        self._session.trust_env = False

    def _call(self, method: str, path: str, **arguments: Any) -> Any:
        try:
            response = self._session.request(
                method, self.url + path, timeout=TIMEOUT_S, allow_redirects=False, **arguments
            )
            if response.status_code >= 300:
                raise Refused(response)
            return response.json()
        except requests.RequestException as problem:
            raise Unreachable(f"{self.url} did not answer: {type(problem).__name__}") from problem


class Console(_Client):
    def __init__(self, url: str, api_key: str) -> None:
        super().__init__(url)
        self._session.headers["x-api-key"] = api_key

    def issue(self, dataset_id: str, name: str, parameters: dict[str, object]) -> str:
        """The new command's id."""
        body = {
            "datasetId": dataset_id,
            "clientToken": f"demo-{uuid4()}",
            "name": name,
            "parameters": parameters,
        }
        return str(self._call("POST", "/api/commands/issue", json=body)["id"])

    def dispatch(self, command_id: str, ack_timeout_s: int | None = None) -> None:
        body: dict[str, Any] = {"commandId": command_id}
        if ack_timeout_s is not None:
            body["ackTimeoutSeconds"] = ack_timeout_s
        self._call("POST", "/api/commands/dispatch", json=body)

    def retract(self, command_id: str, reason: str) -> None:
        body = {"commandId": command_id, "reason": reason}
        self._call("POST", "/api/commands/retract", json=body)

    def command(self, command_id: str) -> dict[str, Any]:
        command: dict[str, Any] = self._call("GET", f"/api/commands/{command_id}")
        return command

    def attempts(self, command_id: str) -> list[dict[str, Any]]:
        """One row an attempt, newest first."""
        query = {"commandId": command_id, "limit": 200}
        rows: list[dict[str, Any]] = self._call("GET", "/api/webhooks/deliveries", params=query)[
            "items"
        ]
        return rows

    def endpoint(self, endpoint_id: str) -> dict[str, Any]:
        endpoint: dict[str, Any] = self._call("GET", f"/api/webhooks/endpoints/{endpoint_id}")
        return endpoint

    def enable_endpoint(self, endpoint_id: str) -> None:
        self._call("POST", f"/api/webhooks/endpoints/{endpoint_id}/enable")

    def save_endpoint(self, endpoint_id: str, name: str) -> None:
        self._call("PATCH", f"/api/webhooks/endpoints/{endpoint_id}", json={"name": name})


class ReceiverLog(_Client):
    def posts(self, command_id: str) -> list[dict[str, Any]]:
        """What the receiver saw of a command, oldest first."""
        entries: list[dict[str, Any]] = self._call(
            "GET", "/requests", params={"commandId": command_id}
        )
        return entries


def answers(url: str, timeout_s: float = 2) -> bool:
    """Whether a healthy server is at `url`."""
    session = requests.Session()
    session.trust_env = False
    try:
        return session.get(f"{url}/healthz", timeout=timeout_s).status_code == 200
    except requests.RequestException:
        return False


def _problem(response: requests.Response) -> dict[str, Any]:
    try:
        problem = response.json()
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}
