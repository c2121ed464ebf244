"""Endpoints from the outside: registered, edited, disabled, enabled, archived, and their health.

Whoever changes an endpoint, in the API, the console, the admin or the engine, calls what is named here.
"""

from webhooks.endpoints.encrypting import Reencryption, encrypt_anew
from webhooks.endpoints.health import STRIP, Figures, figures_of, health_of
from webhooks.endpoints.pinging import ping
from webhooks.endpoints.refusals import FieldRefused, Refused
from webhooks.endpoints.registering import Created, NewEndpoint, create, edit, for_commands
from webhooks.endpoints.rotating import MAX_OVERLAP_HOURS, OVERLAP_HOURS, Rotated, rotate_secret
from webhooks.endpoints.rows import go_first
from webhooks.endpoints.switching import (
    archive,
    disable,
    disable_locked,
    enable,
    fail_stranded,
    fail_waiting,
)
from webhooks.endpoints.targets import address_policy, allowed_target

__all__ = [
    "MAX_OVERLAP_HOURS",
    "OVERLAP_HOURS",
    "STRIP",
    "Created",
    "FieldRefused",
    "Figures",
    "NewEndpoint",
    "Reencryption",
    "Refused",
    "Rotated",
    "address_policy",
    "allowed_target",
    "archive",
    "create",
    "disable",
    "disable_locked",
    "edit",
    "enable",
    "encrypt_anew",
    "fail_stranded",
    "fail_waiting",
    "figures_of",
    "for_commands",
    "go_first",
    "health_of",
    "ping",
    "rotate_secret",
]
