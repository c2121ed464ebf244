"""Endpoints from the outside: registered, edited, disabled, enabled, and their health.

Whoever changes an endpoint, in the API, the console, the admin or the engine, calls what is named here.
"""

from webhooks.endpoints.health import STRIP, health_of
from webhooks.endpoints.registering import Created, NewEndpoint, create, edit, for_commands
from webhooks.endpoints.switching import (
    disable,
    disable_locked,
    enable,
    fail_stranded,
    fail_waiting,
)
from webhooks.endpoints.targets import address_policy, allowed_target

__all__ = [
    "STRIP",
    "Created",
    "NewEndpoint",
    "address_policy",
    "allowed_target",
    "create",
    "disable",
    "disable_locked",
    "edit",
    "enable",
    "fail_stranded",
    "fail_waiting",
    "for_commands",
    "health_of",
]
