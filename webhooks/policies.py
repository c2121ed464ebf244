"""The policies of this installation: the presets, and those that its settings add.

Settings come and go, deliveries stay: a delivery of a policy from the settings carries its terms along,
and an endpoint whose policy is gone goes on with a preset.
"""

from __future__ import annotations

import functools
import json
from typing import Any, Final

from django.conf import settings

from webhooks.rules.policies import (
    COMMAND,
    EVENT,
    PING,
    PRESETS,
    Policy,
    PolicyRefused,
    from_terms,
    terms_of,
)

# What an endpoint may choose, by name.
POLICIES: Final[dict[str, Policy]] = {**PRESETS, **settings.DELIVERY_POLICIES}


def of_endpoint(name: str, receives_commands: bool) -> Policy:
    """What new deliveries to an endpoint start with. Where the settings have its policy no longer, what
    the endpoint would have had if it had named none: `command` for commands, else `event`.
    """
    return POLICIES.get(name) or (COMMAND if receives_commands else EVENT)


def kept(policy: Policy) -> dict[str, Any]:
    """The fields by which a delivery keeps the policy it starts with: the name, and the terms of one that
    the settings may change.
    """
    preset = policy.name in PRESETS or policy.name == PING.name
    return {"policy": policy.name, "policy_terms": None if preset else terms_of(policy)}


def of_delivery(name: str, terms: dict[str, Any] | None) -> Policy:
    """The policy of a delivery by what it kept."""
    return started_with(name, json.dumps(terms) if terms else None)


@functools.lru_cache(maxsize=1024)
def started_with(name: str, terms: str | None) -> Policy:
    """The same, ``terms`` as JSON."""
    # A row that somebody made by hand must reach an end too, and hold up no other.
    if terms:
        try:
            return from_terms(name, json.loads(terms))
        except PolicyRefused:
            return COMMAND
    return PING if name == PING.name else PRESETS.get(name, COMMAND)
