"""Which notices somebody may read: an owner all of the organization's, everybody else his own."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from organizations.actors import Actor
from organizations.models import Notice


def sees_all(actor: Actor) -> bool:
    """Whether what was told to others is the actor's to know, as the audit trail is."""
    return actor.may("audit:read")


def visible_to(actor: Actor) -> QuerySet[Notice]:
    """The notices of the organization that the actor may read."""
    own = Q() if sees_all(actor) else Q(recipient=actor.user)
    notices = Notice.objects.filter(own, organization=actor.organization)
    return notices.select_related("recipient")
