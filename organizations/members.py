"""Members: added, given another role, invited once more, removed. Owners alone do it, and one stays.

A person may belong to several organizations: an owner decides over the membership, never over the
account. Whoever is removed is out at once, since every request looks the membership up; his keys are
revoked for good, so that they do not come back with him.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from organizations import audit, keys
from organizations.actors import Actor
from organizations.ids import new_id
from organizations.models import ApiKey, Membership, User
from organizations.notices import outbox
from organizations.notices.outbox import Fact
from organizations.rules import roles
from organizations.rules.notices import Kind


class AlreadyMember(Exception):
    """This person is a member already."""


class LastOwner(Exception):
    """An organization keeps an owner: make somebody else one first."""


@dataclass(frozen=True)
class Invited:
    """A member who is to get in. ``hand_over`` is set when no mail takes the way in to him and the owner
    may: nobody else's access hangs on the account.
    """

    membership: Membership
    hand_over: bool


def add(actor: Actor, email: str, role: str) -> Invited:
    """Make a person a member, with a new account if the address has none. He is mailed how to get in.

    Raises AlreadyMember.
    """
    actor.require("members:write")
    with transaction.atomic():
        user = _account_of(email)
        try:
            with transaction.atomic():
                membership = Membership.objects.create(
                    organization=actor.organization, user=user, role=role
                )
        except IntegrityError:
            raise AlreadyMember from None
        _follow_in_the_admin(user, role)
        audit.record(actor, "membership.create", membership, after=facts(membership))
        _tell(actor, membership)
    return Invited(membership, _to_be_handed_over(membership))


def _account_of(email: str) -> User:
    """The person with this address; a new account has no password until its owner chooses one."""
    found = User.objects.filter(email__iexact=email).first()
    if found:
        return found
    try:
        with transaction.atomic():
            return User.objects.create_user(email)
    except IntegrityError:
        # Another organization added the same person in this moment.
        return User.objects.get(email__iexact=email)


def invite_again(actor: Actor, membership_id: int) -> Invited:
    """Mail somebody once more how to get in: the last link was lost, or too old."""
    actor.require("members:write")
    with transaction.atomic():
        membership = _locked(actor, membership_id)
        audit.record(actor, "membership.invite", membership)
        _tell(actor, membership)
    return Invited(membership, _to_be_handed_over(membership))


def _tell(actor: Actor, membership: Membership) -> None:
    """The way in itself is made when the mail is written: what waits in the outbox is no secret."""
    outbox.tell(
        [
            Fact(
                organization_id=membership.organization_id,
                recipient_id=membership.user_id,
                kind=Kind.MEMBER_ADDED,
                name=f"{Kind.MEMBER_ADDED}:{new_id()}",
                subject_id=membership.user_id,
                content={"name": membership.role, "by": actor.user.email},
            )
        ]
    )


def _to_be_handed_over(membership: Membership) -> bool:
    """Without a mail server an owner hands the way in over. Not that of an account which leads to more
    than his own organization: he could take it himself.
    """
    user = membership.user
    if settings.MAIL_SERVER.host or user.has_usable_password() or user.is_superuser:
        return False
    return not user.memberships.exclude(organization=membership.organization_id).exists()


def change_role(actor: Actor, membership_id: int, role: str) -> Membership:
    """Give a member another role, from the next request on. The same one changes nothing.

    Raises LastOwner.
    """
    actor.require("members:write")
    with transaction.atomic():
        membership = _locked(actor, membership_id)
        if membership.role != role:
            before = facts(membership)
            membership.role = role
            with _unless_last_owner(membership_id):
                membership.save(update_fields=["role"])
            _follow_in_the_admin(membership.user, role, was=before["role"])
            audit.record(
                actor, "membership.edit", membership, before=before, after=facts(membership)
            )
    return membership


def remove(actor: Actor, membership_id: int) -> Membership:
    """Let somebody in no more and revoke his keys. What he did stays on record. Raises LastOwner."""
    actor.require("members:write")
    with transaction.atomic():
        membership = _locked(actor, membership_id)
        for key in keys_of(membership):
            keys.revoke(actor, key)
        audit.record(actor, "membership.remove", membership, before=facts(membership))
        with _unless_last_owner(membership_id):
            Membership.objects.filter(pk=membership_id).delete()
        _follow_in_the_admin(membership.user, "", was=membership.role)
    return membership


@contextlib.contextmanager
def _unless_last_owner(membership_id: int) -> Iterator[None]:
    """The guard of the database decides in the end: it alone sees what others do at the same time."""
    if is_last_owner(Membership.objects.get(pk=membership_id)):
        raise LastOwner
    try:
        with transaction.atomic():
            yield
    except IntegrityError:
        raise LastOwner from None


def _follow_in_the_admin(user: User, role: str, was: str = "") -> None:
    """An owner gets into the admin too, for as long as he is one anywhere. Who was let in there for another
    reason stays.
    """
    if role == roles.OWNER:
        User.objects.filter(pk=user.pk).update(is_staff=True)
    elif was == roles.OWNER and not user.memberships.filter(role=roles.OWNER).exists():
        User.objects.filter(pk=user.pk, is_superuser=False).update(is_staff=False)


def keys_of(membership: Membership) -> list[ApiKey]:
    """The keys that end with this membership."""
    unrevoked = ApiKey.objects.filter(revoked_at=None, user=membership.user_id)
    return list(unrevoked.filter(organization=membership.organization_id).order_by("pk"))


def is_last_owner(membership: Membership) -> bool:
    """Whether nobody else is an owner who may sign in."""
    if membership.role != roles.OWNER:
        return False
    owners = able_owners(membership.organization_id)
    return not owners.exclude(pk=membership.pk).exists()


def able_owners(organization_id: UUID) -> QuerySet[Membership]:
    """The owners whose accounts are not locked."""
    return Membership.objects.filter(
        organization=organization_id, role=roles.OWNER, user__is_active=True
    )


def facts(membership: Membership) -> dict[str, str]:
    """What the audit trail keeps of a membership."""
    return {"user": membership.user.email, "role": membership.role}


def _locked(actor: Actor, membership_id: int) -> Membership:
    """The member, who keeps his role until the transaction ends, and gets no key meanwhile."""
    members = Membership.objects.select_for_update(of=("self",)).select_related("user")
    return members.get(pk=membership_id, organization=actor.organization)
