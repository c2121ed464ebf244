"""What a person does not want to be mailed. That an endpoint was disabled is not among it."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction
from django.db.models.functions import Now

from organizations import audit
from organizations.actors import Actor
from organizations.models import Membership, Notice
from organizations.rules.notices import MUTABLE, Kind


def muted_by(actor: Actor) -> frozenset[Kind]:
    """The kinds that the actor has switched off in this organization."""
    return frozenset(Kind(kind) for kind in _membership(actor).muted_notices)


def mute(actor: Actor, kinds: Collection[Kind]) -> None:
    """Switch off these kinds for the actor, and on the others. What waits of a kind that is now off is
    given up; what is under way arrives.
    """
    off = [kind.value for kind in MUTABLE if kind in kinds]
    with transaction.atomic():
        membership = _membership(actor, lock=True)
        before = membership.muted_notices
        if before == off:
            return
        membership.muted_notices = off
        membership.save(update_fields=["muted_notices"])
        _give_up_waiting(actor, off)
        audit.record(
            actor,
            "notices.preferences",
            membership,
            before={"switchedOff": before},
            after={"switchedOff": off},
        )


def _give_up_waiting(actor: Actor, kinds: Collection[str]) -> None:
    waiting = Notice.objects.filter(
        recipient=actor.user,
        organization=actor.organization,
        kind__in=kinds,
        next_try_at__isnull=False,
    )
    waiting.update(
        state=Notice.State.GAVE_UP,
        next_try_at=None,
        settled_at=Now(),
        error="Switched off before it was sent.",
    )


def _membership(actor: Actor, *, lock: bool = False) -> Membership:
    rows = Membership.objects.select_for_update(no_key=True) if lock else Membership.objects
    return rows.get(organization=actor.organization, user=actor.user)
