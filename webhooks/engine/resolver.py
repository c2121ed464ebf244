"""Names to addresses that a delivery may go to, within a bound.

`getaddrinfo` has no timeout of its own and cannot be interrupted, so it runs in a daemon thread
that the caller stops waiting for. One lookup a name is in flight at any time: a name whose servers
never answer costs one thread, however many deliveries wait for it.
"""

import socket
import threading
import time
from concurrent.futures import Future

from webhooks.rules.addresses import AddressPolicy, ParsedTarget, blocked_reason

# Long enough that a burst to one endpoint asks once, short enough that a receiver that moves is
# found by the next attempt of its retry schedule (5 s and more).
CACHE_SECONDS = 5.0
CACHE_NAMES = 2048


class NameFailed(Exception):
    """The name does not resolve."""


class NameTimedOut(Exception):
    """The name was not resolved in time."""


class AddressBlocked(Exception):
    """The name has an address that nothing may be sent to."""


def system_lookup(host: str) -> list[str]:
    """The addresses of a name, in the order in which the system would try them."""
    answers = socket.getaddrinfo(host.encode("ascii"), None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in answers))


class Resolver:
    """Resolves and judges. Thread-safe; one for each process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[str, Future[list[str]]] = {}
        self._cache: dict[str, tuple[float, list[str]]] = {}

    def allowed_addresses(
        self, target: ParsedTarget, policy: AddressPolicy, timeout: float
    ) -> list[str]:
        """The addresses of the target's host, each of them allowed, in the system's order.

        One address that is not allowed condemns the name: whoever controls its DNS could choose
        which of them is connected to. `timeout` is in seconds. Raises NameFailed, NameTimedOut or
        AddressBlocked.
        """
        literal = target.literal is not None
        addresses = [target.host] if literal else self._resolve(target.host, timeout)
        for address in addresses:
            if reason := blocked_reason(address, policy):
                raise AddressBlocked(reason)
        return addresses

    def _resolve(self, host: str, timeout: float) -> list[str]:
        try:
            addresses = self._flight(host).result(timeout)
        except TimeoutError as error:
            raise NameTimedOut from error
        except OSError as error:
            raise NameFailed(error.strerror or "unknown error") from error
        if not addresses:
            raise NameFailed("it has no address")
        return addresses

    def _flight(self, host: str) -> Future[list[str]]:
        """The lookup that is under way, the cached answer, or a new lookup."""
        with self._lock:
            if host in self._flights:
                return self._flights[host]
            flight: Future[list[str]] = Future()
            expires, addresses = self._cache.get(host, (0.0, []))
            if time.monotonic() < expires:
                flight.set_result(addresses)
                return flight
            threading.Thread(
                target=self._look_up,
                args=(host, flight),
                name=f"resolve {host}",
                daemon=True,
            ).start()
            # The thread waits for the lock before it lands, so it cannot miss its own flight.
            self._flights[host] = flight
            return flight

    def _look_up(self, host: str, flight: Future[list[str]]) -> None:
        try:
            addresses = system_lookup(host)
        except Exception as error:
            self._land(host)
            flight.set_exception(error)
        else:
            self._land(host, addresses)
            flight.set_result(addresses)

    def _land(self, host: str, addresses: list[str] | None = None) -> None:
        """End the flight. Only an answer is kept, so that a failure is asked anew."""
        with self._lock:
            del self._flights[host]
            if addresses:
                if len(self._cache) >= CACHE_NAMES:
                    self._cache.clear()
                self._cache[host] = time.monotonic() + CACHE_SECONDS, addresses
