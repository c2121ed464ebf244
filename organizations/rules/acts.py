"""What the audit trail says somebody did, in words, and what such an act is done to."""

from __future__ import annotations

from typing import Final

# A sentence's start; the name of what it was done to follows. Services write the keys.
ACTS: Final = {
    "command.issue": "Issued the command",
    "command.dispatch": "Dispatched the command",
    "command.ack": "Reported on the command",
    "command.retract": "Retracted the command",
    "commands.export": "Exported commands of",
    "experiment.create": "Created the experiment",
    "experiment.edit": "Edited the experiment",
    "dataset.create": "Created the dataset",
    "dataset.edit": "Edited the dataset",
    "dataset.arm": "Armed the dataset",
    "dataset.disarm": "Disarmed the dataset",
    "endpoint.create": "Registered the endpoint",
    "endpoint.edit": "Edited the endpoint",
    "endpoint.ping": "Pinged the endpoint",
    "endpoint.disable": "Disabled the endpoint",
    "endpoint.enable": "Enabled the endpoint",
    "endpoint.rotate_secret": "Rotated the secret of the endpoint",
    "endpoint.archive": "Archived the endpoint",
    "event.publish": "Published the event",
    "membership.create": "Added the member",
    "membership.edit": "Changed the role of",
    "membership.invite": "Invited once more",
    "membership.remove": "Removed the member",
    "notices.preferences": "Chose which mails go to",
    "user.edit": "Edited the account of",
    "user.set_password": "Set the password of",
    "api_key.create": "Made the API key",
    "api_key.revoke": "Revoked the API key",
    "organization.create": "Created the organization",
    "organization.edit": "Renamed the organization",
}

# What acts are done to, in groups as somebody looks for them.
GROUPS: Final = {
    "commands": ("command",),
    "datasets": ("dataset", "experiment"),
    "endpoints": ("endpoint",),
    "events": ("event",),
    "people": ("membership", "user", "apikey", "organization"),
}
TARGET_TYPES: Final = tuple(target for targets in GROUPS.values() for target in targets)

# The traffic: machines write these by the million. Everything else is done by people, some times a day.
TRAFFIC: Final = ("command", "event")

DOORS: Final = {
    "console": "Console",
    "admin": "Admin",
    "api": "API key",
    "cli": "Command line",
    "engine": "The console itself",
}


def words_of(act: str) -> str:
    """The act in words; one that is not known as it was written."""
    return ACTS.get(act, act)


def is_traffic(act: str) -> bool:
    return act.partition(".")[0] in TRAFFIC
