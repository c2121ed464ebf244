"""No state lasts by itself: each is an end, or code here is named that moves a row on from it.

A row is put by hand into each state that is not an end, as of long ago, and the code that is named for it
must move it. A new state fails the first test until somebody names the code that moves it on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import pytest
from django.apps import apps
from django.db import models
from django.db.models.functions import Now

from commands import lifecycle
from commands.models import Command
from commands.tasks import sweep_ack_deadlines
from organizations.models import Notice
from organizations.notices import outbox
from organizations.rules.notices import Kind
from tests import factories
from tests.factories import WORKER, Scene, record
from webhooks.engine import claims
from webhooks.engine.tasks import sweep_leases
from webhooks.models import Attempt, Delivery

pytestmark = pytest.mark.django_db

LONG_AGO = timedelta(days=30)
OURS = ("organizations", "webhooks", "commands")
# The fields that say how far a row has come.
STATE_FIELDS = ("state", "verdict")

END = "an end"
A_PERSON = "a person decides: dispatch or retract"

Make = Callable[[Scene], models.Model]
Move = Callable[[], object]


@dataclass(frozen=True)
class Moves:
    """A row put into a state long ago, and what must move it on."""

    make: Make
    by: Move


def deliver() -> None:
    """What a worker does with whatever is due; the receiver answers 200."""
    record(*(factories.answer(attempt, 200) for attempt in claims.claim(100, WORKER)))


def send_a_mail() -> None:
    """What the postman does with whatever waits."""
    mail = outbox.claim()
    assert mail
    outbox.record_sent(mail, Notice.Channel.MAIL)


# --- rows by hand -------------------------------------------------------------------------------


def expire() -> None:
    Delivery.objects.filter(lease_until__isnull=False).update(lease_until=Now() - LONG_AGO)


def waiting(scene: Scene) -> Delivery:
    delivery = scene.send()
    Delivery.objects.filter(pk=delivery.pk).update(next_attempt_at=Now() - LONG_AGO)
    return delivery


def queued(scene: Scene) -> Command:
    command = scene.dispatched()
    Delivery.objects.filter(command_id=command.pk).update(next_attempt_at=Now() - LONG_AGO)
    return command


def unfinished(scene: Scene) -> Attempt:
    _, claimed = scene.on_the_wire()
    expire()
    return Attempt.objects.get(pk=claimed.attempt_id)


def unreported(scene: Scene) -> Command:
    return scene.overdue()


def untold(scene: Scene) -> Notice:
    owner = scene.owner.user
    Notice.objects.create(
        organization=scene.organization,
        recipient=owner,
        kind=Kind.ENDPOINT_DISABLED,
        fact="long ago",
        subject_id=scene.endpoint.pk,
        facts={},
        next_try_at=Now() - LONG_AGO,
    )
    return Notice.objects.get(fact="long ago")


# --- the states ---------------------------------------------------------------------------------

STATES: dict[str, dict[str, str | Moves]] = {
    "webhooks.Delivery.state": {
        "pending": Moves(waiting, deliver),
        "delivered": END,
        "failed": END,
        "cancelled": END,
    },
    "webhooks.Attempt.verdict": {
        "": Moves(unfinished, sweep_leases),
        "delivered": END,
        "retry": END,
        "failed": END,
        "lost": END,
    },
    "commands.Command.state": {
        "logged": A_PERSON,
        "queued": Moves(queued, deliver),
        "delivered": Moves(unreported, sweep_ack_deadlines),
        "failed": END,
        "acked": END,
        "nacked": END,
        "timed_out": END,
        "retracted": END,
    },
    "organizations.Notice.state": {
        "waiting": Moves(untold, send_a_mail),
        "sent": END,
        "gave_up": END,
    },
}


def declared() -> dict[str, set[str]]:
    """Every state field of our models, with its values."""
    found: dict[str, set[str]] = {}
    for app in OURS:
        for model in apps.get_app_config(app).get_models():
            for field in model._meta.get_fields():
                if isinstance(field, models.CharField) and field.name in STATE_FIELDS:
                    values = {str(value) for value, _ in field.flatchoices}
                    empty = {""} if field.blank else set()
                    found[f"{app}.{model.__name__}.{field.name}"] = values | empty
    return found


def test_every_state_is_an_end_or_names_what_moves_it_on() -> None:
    named = {field: set(states) for field, states in STATES.items()}
    assert named == declared(), "name the code that moves a row on from the new state, in STATES"


MOVED = [
    pytest.param(field, state, moves, id=f"{field.split('.')[1]}-{state or 'open'}")
    for field, states in STATES.items()
    for state, moves in states.items()
    if isinstance(moves, Moves)
]


@pytest.mark.parametrize(("field", "state", "moves"), MOVED)
def test_what_is_named_moves_a_row_on_that_was_left_long_ago(
    scene: Scene, field: str, state: str, moves: Moves
) -> None:
    row, name = moves.make(scene), field.rpartition(".")[2]
    row.refresh_from_db()
    assert getattr(row, name) == state

    moves.by()

    row.refresh_from_db()
    assert getattr(row, name) != state


def test_a_delivery_that_was_cancelled_in_flight_lets_go_of_its_attempt(scene: Scene) -> None:
    """The one end that may still hold something: what was on the wire when it was retracted."""
    command, claimed = scene.on_the_wire()
    lifecycle.retract(scene.operator, command.pk)
    expire()

    sweep_leases()

    assert Attempt.objects.get(pk=claimed.attempt_id).verdict == "lost"
    assert not Delivery.objects.filter(lease_until__isnull=False).exists()


# --- leases -------------------------------------------------------------------------------------


def in_flight(scene: Scene) -> Delivery:
    return unfinished(scene).delivery


def under_way(scene: Scene) -> Notice:
    notice = untold(scene)
    assert outbox.claim()
    Notice.objects.filter(lease_until__isnull=False).update(lease_until=Now() - LONG_AGO)
    return notice


# Whoever holds a row of these may die: who takes it back.
LEASES: dict[str, Moves] = {
    "webhooks.Delivery": Moves(in_flight, sweep_leases),
    "organizations.Notice": Moves(under_way, send_a_mail),
}


def test_every_kind_of_row_that_is_held_names_who_takes_it_back() -> None:
    held = {
        f"{app}.{model.__name__}"
        for app in OURS
        for model in apps.get_app_config(app).get_models()
        if any(field.name == "lease_until" for field in model._meta.get_fields())
    }
    assert set(LEASES) == held, "name the code that takes back what a dead process held, in LEASES"


@pytest.mark.parametrize("moves", LEASES.values(), ids=LEASES)
def test_what_a_dead_process_held_long_ago_is_taken_back(scene: Scene, moves: Moves) -> None:
    row = moves.make(scene)
    held = type(row)._default_manager.filter(pk=row.pk, lease_until__isnull=False)
    assert held.exists()

    moves.by()

    assert not held.exists()
