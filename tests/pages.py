"""Every page of the console, as the URL configuration has it, each with a thing to show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver, reverse

from commands import datasets
from commands.models import Command, Dataset
from commands.rules.states import State
from organizations import keys
from organizations.models import ApiKey, Membership
from organizations.rules import roles
from tests.factories import Scene, answer, claim, fail_with, record
from webhooks import endpoints
from webhooks.models import Delivery, Endpoint, Event

# What is answered by something else than a page of its own.
NOT_PAGES = {
    "home": "leads to the overview",
    "check_parameters": "a part of a page",
    "export_commands": "a file",
    "choose_organization": "is posted to",
    "choose_notices": "is posted to",
    "choose_zone": "is posted to",
}


@dataclass(frozen=True)
class Things:
    """One of everything that a page shows."""

    command: Command
    logged: Command
    lost: Command
    armed: Dataset
    unarmed: Dataset
    endpoint: Endpoint
    disabled: Endpoint
    watcher: Endpoint
    delivery: Delivery
    event: Event
    member: Membership
    key: ApiKey


# Which thing a page shows or acts on.
SHOWN: dict[str, Callable[[Things], Any]] = {
    "command": lambda things: things.command,
    "retract": lambda things: things.command,
    "dispatch": lambda things: things.logged,
    "reissue": lambda things: things.lost,
    "arm": lambda things: things.unarmed,
    "disarm": lambda things: things.armed,
    "endpoint": lambda things: things.endpoint,
    "edit_endpoint": lambda things: things.endpoint,
    "ping_endpoint": lambda things: things.endpoint,
    "rotate_secret": lambda things: things.endpoint,
    "archive_endpoint": lambda things: things.endpoint,
    "disable_endpoint": lambda things: things.endpoint,
    "enable_endpoint": lambda things: things.disabled,
    "delivery": lambda things: things.delivery,
    "event": lambda things: things.event,
    "change_role": lambda things: things.member,
    "invite_again": lambda things: things.member,
    "remove_member": lambda things: things.member,
    "revoke_key": lambda things: things.key,
}


def things_of(scene: Scene) -> Things:
    """Make one of everything, by the console's services."""
    commands = {state: scene.in_state(state) for state in State}
    retrying = scene.dispatched(name="retrying", ack_timeout_s=3600)
    record(answer(claim(retrying), 503, response_excerpt=b"<b>out of order</b>", retry_after="9"))
    watcher = scene.another_endpoint("event", name="Ledger", event_types=["order.*"])
    event = scene.published(number=7, price="1.10")
    [delivery] = event.deliveries.filter(endpoint=watcher)
    fail_with(delivery, [500, 400])
    disabled = scene.another_endpoint("telemetry", name="Disabled one")
    fail_with(scene.send(disabled), [500, 503])
    endpoints.disable(scene.owner, disabled.pk, "Moving to the new cluster")
    endpoints.ping(scene.owner, disabled.pk)
    operator = scene.provisioned.members[roles.OPERATOR].membership
    key, _ = keys.create_key(scene.organization, operator.user, "integration")
    return Things(
        command=retrying,
        logged=commands[State.LOGGED],
        lost=commands[State.TIMED_OUT],
        armed=scene.dataset,
        unarmed=datasets.create_dataset(scene.owner, scene.experiment, "Not armed"),
        endpoint=scene.endpoint,
        disabled=Endpoint.objects.get(pk=disabled.pk),
        watcher=watcher,
        delivery=delivery,
        event=event,
        member=operator,
        key=key,
    )


def addresses(things: Things) -> dict[str, str]:
    """The address of each page by its name. Raises LookupError where a page needs a thing and nobody
    has said which.
    """
    found = {}
    for pattern in _of_the_console(get_resolver().url_patterns):
        name = str(pattern.name)
        if name in NOT_PAGES:
            continue
        arguments = []
        if pattern.pattern.converters:
            if name not in SHOWN:
                raise LookupError(f"Say in tests/pages.py which thing the page {name} shows.")
            arguments = [SHOWN[name](things).pk]
        found[name] = reverse(name, args=arguments)
    return found


def _of_the_console(patterns: list[URLPattern | URLResolver]) -> Iterator[URLPattern]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from _of_the_console(pattern.url_patterns)
        elif ".console." in pattern.callback.__module__:
            yield pattern
