"""`python -m demo.receiver`: a real HTTP server on 127.0.0.1 with one path a behaviour.

Deliveries are POSTed to `/<behaviour>`; `GET /requests?commandId=` tells what arrived and when,
`GET /healthz` that the server is up, `GET /` which paths there are.
"""

from __future__ import annotations

import html
import json
import logging
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from demo.acks import Report, Reporter
from demo.behaviours import BEHAVIOURS, Answer, Wire, problem
from demo.environment import HOST, Environment, EnvironmentProblem, local_url, read_environment
from demo.reception import Delivery, Outcome, Reception
from demo.seeded import DemoFile

logger = logging.getLogger("demo.receiver")

# Longer than the longest wait of the policy `command` (625 s), so that a connection the sender kept
# from the attempt before is not closed just as it writes the next one.
IDLE_S = 900
# Once a request has begun, a sender that allows 10 s for the whole attempt is long gone after this.
READ_S = 30
# /hang ends when the sender gives up; this bounds one that never does.
HANG_S = 60
MAX_BODY_BYTES = 1024 * 1024


class ReceiverServer(ThreadingHTTPServer):
    daemon_threads = True
    # Connections arriving together must not be reset while a thread is being started.
    request_queue_size = 512

    def __init__(self, port: int, reception: Reception, reporter: Reporter) -> None:
        super().__init__((HOST, port), Handler)
        self.reception = reception
        self.reporter = reporter

    @property
    def url(self) -> str:
        return local_url(self.server_port)

    def handle_error(self, request: object, client_address: object) -> None:
        """A sender that went away mid-answer is its own business; anything else is a defect."""
        if not isinstance(sys.exception(), OSError):
            logger.exception("request from %s failed", client_address)


class Handler(BaseHTTPRequestHandler):
    server: ReceiverServer
    protocol_version = "HTTP/1.1"
    server_version = "demo-receiver"
    sys_version = ""
    # One packet an answer: head and body written apart would wait 40 ms for a delayed ACK.
    wbufsize = -1
    disable_nagle_algorithm = True

    def handle_one_request(self) -> None:
        """Note when the first byte is there, which may be long after the request before."""
        self.connection.settimeout(IDLE_S)
        try:
            first = self.rfile.peek(1)  # type: ignore[attr-defined]
        except OSError:
            first = b""
        if not first:
            self.close_connection = True
            return
        self.arrived, self.started = time.time(), time.monotonic()
        self.connection.settimeout(READ_S)
        super().handle_one_request()

    def do_POST(self) -> None:
        body = self._read_body()
        if body is None:
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        path = urlsplit(self.path).path.strip("/")
        delivery = Delivery(self.arrived, path, headers, body)
        outcome = self.server.reception.receive(delivery)
        self._carry_out(outcome)
        self._log_delivery(delivery, outcome)
        command_id = delivery.command_id
        if outcome.acknowledgement is not None and command_id is not None:
            self.server.reporter.submit(Report(command_id, outcome.acknowledgement))
        if outcome.wire is Wire.HANG:
            self._wait_until_the_sender_gives_up()

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        if url.path == "/requests":
            command_id = parse_qs(url.query).get("commandId", [None])[0]
            self._send(_json(self.server.reception.log.about(command_id)))
        elif url.path == "/healthz":
            self._send(_json({"status": "ok"}))
        elif url.path == "/":
            self._send(Answer(200, _page(), "text/html; charset=utf-8"))
        else:
            self._send(problem(404, "Not found", "Deliveries are POSTed to the paths listed at /."))

    def _read_body(self) -> bytes | None:
        """The body, or None when the request cannot be read to its end (already answered)."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or "Transfer-Encoding" in self.headers:
            self._refuse(411, "A Content-Length is required.")
            return None
        # Compared as text first: int() of a number with thousands of digits is an error of its own.
        if len(length) > 10 or int(length) > MAX_BODY_BYTES:
            self._refuse(413, f"The body may have {MAX_BODY_BYTES} bytes.")
            return None
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            self.close_connection = True
            return None
        return body

    def _refuse(self, status: int, detail: str) -> None:
        self.close_connection = True
        self._send(problem(status, "Request not read", detail))
        logger.info("%s %s: %s", self.command, status, detail)

    def _carry_out(self, outcome: Outcome) -> None:
        if outcome.wire is Wire.ANSWER:
            self._send(outcome.answer)
        else:
            self.close_connection = True

    def _send(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(answer.body)
        # Sent before a report is queued: an integrator accepts first and acknowledges after.
        self.wfile.flush()

    def _wait_until_the_sender_gives_up(self) -> None:
        self.connection.settimeout(HANG_S)
        try:
            self.connection.recv(1)
        except OSError:
            return

    def _log_delivery(self, delivery: Delivery, outcome: Outcome) -> None:
        answered = outcome.answer.status if outcome.wire is Wire.ANSWER else outcome.wire.value
        logger.info(
            "POST /%s %s attempt %s command %s %s (%s) %.1f ms",
            printable(delivery.path),
            answered,
            delivery.attempt or "-",
            printable(delivery.command_id or "-"),
            printable(delivery.webhook_id or "-"),
            outcome.why,
            (time.monotonic() - self.started) * 1000,
        )

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Deliveries are logged where they are understood; reads are too many to log."""

    def log_message(self, format: str, *args: object) -> None:
        logger.info("%s", printable(format % args))


def printable(text: str) -> str:
    """What a sender wrote, kept to one line of a terminal and free of control sequences."""
    return "".join(c if c.isprintable() else "?" for c in text[:100])


def _json(value: object) -> Answer:
    return Answer(200, json.dumps(value).encode(), "application/json")


def _page() -> bytes:
    rows = "".join(
        f"<tr><td><code>/{html.escape(name)}</code></td><td>{html.escape(behaviour.about)}</td></tr>"
        for name, behaviour in BEHAVIOURS.items()
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Demo receiver</title>'
        "<h1>Demo receiver</h1><p>POST a signed delivery to one of these paths. "
        f"<a href='/requests'>What has arrived</a>.</p><table>{rows}</table></html>"
    ).encode()


def build_server(environment: Environment) -> ReceiverServer:
    demo_file = DemoFile(environment.demo_file)
    reporter = Reporter(environment.console_url, demo_file)
    return ReceiverServer(environment.receiver_port, Reception(demo_file), reporter)


def main() -> int:
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    try:
        environment = read_environment()
        server = build_server(environment)
    except EnvironmentProblem as malformed:
        print(malformed, file=sys.stderr)
        return 1
    except OSError as refused:
        port = environment.receiver_port
        print(f"Cannot listen on port {port}: {refused.strerror}. Set RECEIVER_PORT to a free one.")
        return 1
    _serve_until_told_to_stop(server)
    return 0


def _serve_until_told_to_stop(server: ReceiverServer) -> None:
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    threading.Thread(target=server.serve_forever, name="accept", daemon=True).start()
    logger.info("demo receiver on %s", server.url)
    stop.wait()
    server.server_close()


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    # Not sys.exit: a request thread writing its log line while the interpreter takes itself apart
    # can abort the process, and /hang holds threads that must not delay the stop.
    os._exit(status)
