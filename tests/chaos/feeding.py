"""Steady work through the services: commands and events, at a fixed rate, whatever breaks meanwhile.

What a service call returned is *accepted*: from then on it must not be lost. A call that failed is made
again with the same client token, as an integrator would.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from uuid import UUID, uuid4

from django.db import connection, transaction

from commands import datasets, issuing, lifecycle
from commands.errors import DispatchRefused
from commands.models import Dataset
from tests.chaos.patience import patiently
from tests.chaos.receivers import Receivers
from tests.factories import new_endpoint, new_scene
from webhooks import publishing
from webhooks.models import Endpoint

# Of each hundred deliveries, how many go where. The hanging receiver holds a thread for ten seconds.
SHARES = {"healthy": 71, "flaky": 18, "events": 9, "hanging": 2}
ACK_TIMEOUT_S = 30
# More than fifty attempts at once, for the stop with work on the wire.
SLOW_MAX_IN_FLIGHT = 60


class Feeder:
    """An organization whose operator dispatches commands all the time."""

    def __init__(self, receivers: Receivers, per_second: float) -> None:
        self.accepted: list[UUID] = []
        # What a receiver does depends on these: each receiver has a row of its own.
        self._numbers: defaultdict[str, Iterator[int]] = defaultdict(itertools.count)
        self._pause_s = 1 / per_second
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._feed, name="feeder")
        self._scene = new_scene("Chaos")
        self._datasets = {name: self._dataset(name, receivers) for name in ("healthy", "flaky")}
        self.endpoints = {
            "events": self._endpoint("event", receivers.url("healthy")),
            "hanging": self._endpoint("event", receivers.url("hanging")),
            "slow": self._endpoint("event", receivers.url("slow")),
            "healthy": self._endpoint_of("healthy"),
            "flaky": self._endpoint_of("flaky"),
        }
        Endpoint.objects.filter(pk=self.endpoints["slow"].pk).update(
            max_in_flight=SLOW_MAX_IN_FLIGHT
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def burst(self, name: str, count: int) -> None:
        """Some deliveries at once, beside the steady ones."""
        for _ in range(count):
            self._send_event(name)

    # --- the organization -----------------------------------------------------------------------

    def _endpoint(self, policy: str, url: str) -> Endpoint:
        return new_endpoint(self._scene.owner, policy, url=url)

    def _endpoint_of(self, name: str) -> Endpoint:
        endpoint = self._datasets[name].endpoint
        assert endpoint
        return endpoint

    def _dataset(self, name: str, receivers: Receivers) -> Dataset:
        """An armed dataset whose commands go to this receiver."""
        owner = self._scene.owner
        dataset = datasets.create_dataset(owner, self._scene.experiment, name)
        dataset.endpoint = self._endpoint("command", receivers.url(name))
        dataset.save(update_fields=["endpoint"])
        return datasets.arm(owner, dataset.pk)

    # --- the work -------------------------------------------------------------------------------

    def _feed(self) -> None:
        wheel = itertools.cycle(_spread(SHARES))
        due = time.monotonic()
        while not self._stopping.wait(max(due - time.monotonic(), 0)):
            name = next(wheel)
            send = self._send_command if name in self._datasets else self._send_event
            send(name)
            # After an outage the work that was not dispatched is not made up for.
            due = max(due + self._pause_s, time.monotonic() - 1)
        connection.close()

    def _send_command(self, name: str) -> None:
        token, number = uuid4().hex, next(self._numbers[name])
        self._accept(lambda: self._dispatch(name, token, number))

    def _dispatch(self, name: str, token: str, number: int) -> UUID:
        operator = self._scene.operator
        parameters = {"n": number}
        command = issuing.issue(operator, self._datasets[name], token, "hold", parameters).command
        try:
            command = lifecycle.dispatch(operator, command.pk, ACK_TIMEOUT_S)
        except DispatchRefused as refused:
            # The call before this one failed after it had been carried out.
            if refused.code != "already_dispatched":
                raise
            command.refresh_from_db()
        assert command.delivery_id
        return command.delivery_id

    def _send_event(self, name: str) -> None:
        number = next(self._numbers[name])
        self._accept(lambda: self._publish(name, number))

    def _publish(self, name: str, number: int) -> UUID:
        with transaction.atomic():
            body = b'{"n":%d}' % number
            return publishing.send_to(self.endpoints[name], "chaos.event", body).pk

    def _accept(self, send: Callable[[], UUID]) -> None:
        self.accepted.append(patiently(send))


def _spread(shares: dict[str, int]) -> list[str]:
    """Each name as often as its share says, evenly mixed."""
    total = sum(shares.values())
    places = [
        (turn * total / share, name) for name, share in shares.items() for turn in range(share)
    ]
    return [name for _, name in sorted(places)]
