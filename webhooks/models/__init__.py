"""How: where webhooks go, what is sent, and what came of each attempt."""

from webhooks.models.delivery import Attempt, Delivery, Heartbeat
from webhooks.models.endpoint import Endpoint, EndpointSecret
from webhooks.models.event import Event

__all__ = ["Attempt", "Delivery", "Endpoint", "EndpointSecret", "Event", "Heartbeat"]
