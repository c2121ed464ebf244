"""Types of events: how they are named, which the console tells of itself, and who subscribes to what."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

MAX_LENGTH: Final = 100
WILDCARD: Final = "*"

TYPE = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)*", re.ASCII)


@dataclass(frozen=True)
class EventType:
    """A type that the console itself sends. ``subscribable``: published to whoever subscribes to it;
    otherwise addressed to one endpoint.
    """

    name: str
    description: str
    subscribable: bool = True


PING: Final = "ping"
COMMAND_DISPATCH: Final = "command.dispatch"
ENDPOINT_DISABLED: Final = "endpoint.disabled"

CATALOGUE: Final = (
    EventType(
        "command.delivered", "The endpoint answered 2xx; the integrator's report is awaited."
    ),
    EventType("command.failed", "No attempt delivered the command, and none follows."),
    EventType("command.acked", "The integrator reported success in time."),
    EventType("command.nacked", "The integrator reported a rejection in time."),
    EventType("command.timed_out", "It was delivered, and no report came before its deadline."),
    EventType("command.retracted", "An operator withdrew the command."),
    EventType(ENDPOINT_DISABLED, "An endpoint was disabled, by its rule or by an owner."),
    EventType(PING, "A test of one endpoint, which an owner asked for; counts for no rule.", False),
    EventType(
        COMMAND_DISPATCH, "A command on its way to the endpoint that takes its dataset's.", False
    ),
)


def is_type(text: str) -> bool:
    """Whether an event may have this type: words of a-z, 0-9 and _, with dots between them."""
    return len(text) <= MAX_LENGTH and TYPE.fullmatch(text) is not None


def is_subscription(text: str) -> bool:
    """Whether an endpoint may subscribe to this: a type, ``*``, or ``some.words.*``."""
    if len(text) > MAX_LENGTH:
        return False
    return text == WILDCARD or is_type(text.removesuffix(".*"))


def is_reserved(event_type: str) -> bool:
    """Whether only the console tells of this: a receiver must be able to believe it."""
    return event_type == PING or event_type.startswith(("command.", "endpoint."))


def matches(subscription: str, event_type: str) -> bool:
    """Whether the subscription covers the type. ``command.*`` is every type that begins with
    ``command.``, not ``command`` itself.
    """
    if subscription.endswith(WILDCARD):
        return event_type.startswith(subscription[:-1])
    return subscription == event_type


def is_subscribed(subscriptions: Iterable[str], event_type: str) -> bool:
    """Whether any of the subscriptions covers the type."""
    return any(matches(subscription, event_type) for subscription in subscriptions)
