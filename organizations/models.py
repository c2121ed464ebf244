"""Who: organizations, their members and keys, and the record of what each of them did."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from django.contrib.auth.base_user import BaseUserManager
from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Lower, Now

from organizations import guards
from organizations.ids import new_id
from organizations.rules import roles
from organizations.rules.acts import TRAFFIC
from organizations.rules.notices import MUTABLE, Kind


class Organization(models.Model):
    """A tenant. Nothing of one organization is ever visible to another."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=200)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    def __str__(self) -> str:
        return self.name


class UserManager(BaseUserManager["User"]):
    """Makes users by email address, which is their login."""

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> User:
        user = self.model(email=self.normalize_email(email), **fields)
        user.set_password(password)
        user.save()
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> User:
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)


class User(AbstractUser):
    """A person, known by an email address."""

    username = None  # type: ignore[assignment]
    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    email = models.EmailField("email address", unique=True)

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []
    objects = UserManager()  # type: ignore[misc, assignment]

    class Meta:
        constraints = [
            # Two people whose addresses differ by case alone could not be told apart at login.
            models.UniqueConstraint(Lower("email"), name="user_email_any_case"),
        ]

    def __str__(self) -> str:
        return self.email


class Membership(models.Model):
    """A person's role in an organization."""

    ROLE_CHOICES = [(role, role.capitalize()) for role in roles.ROLES]

    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="memberships"
    )
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="memberships")
    role = models.CharField(max_length=16, choices=ROLE_CHOICES)
    muted_notices = ArrayField(
        models.CharField(max_length=32),
        default=list,
        blank=True,
        help_text="Kinds of notices that the person has switched off.",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint("organization", "user", name="one_role_an_organization"),
            models.CheckConstraint(
                condition=models.Q(muted_notices__contained_by=[kind.value for kind in MUTABLE]),
                name="membership_mutes_what_can_be_muted",
            ),
            models.CheckConstraint(
                condition=models.Q(role__in=roles.ROLES), name="membership_role_known"
            ),
        ]
        # Only an owner gives roles: an organization without one could not be helped from inside.
        triggers = guards.keeps_one(
            "role", roles.OWNER, "organization", "an organization keeps an owner"
        )

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.organization}"


class ApiKey(models.Model):
    """A key of one person in one organization. Only its digest is stored; it is shown once."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="api_keys"
    )
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="api_keys")
    name = models.CharField(max_length=100)
    prefix = models.CharField(
        max_length=12,
        unique=True,
        editable=False,
        help_text="The start of the key, to tell it by.",
    )
    digest = models.CharField(
        max_length=64, editable=False, help_text="SHA-256 of the key, in hexadecimal."
    )
    scopes = ArrayField(models.CharField(max_length=32))
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        verbose_name = "API key"
        triggers = [
            guards.frozen("organization", "user", "prefix", "digest", "created_at"),
            guards.frozen_once_set("revoked_at"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def usable(self, now: datetime) -> bool:
        """Neither revoked nor expired at ``now``."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class AuditEntry(models.Model):
    """Who did what, when, from where, and what stood before and after. Written once, kept for good."""

    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="audit_entries"
    )
    at = models.DateTimeField(db_default=Now(), editable=False)
    user = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    api_key = models.ForeignKey(
        ApiKey, on_delete=models.PROTECT, null=True, related_name="+", db_index=False
    )
    via = models.CharField(max_length=16, help_text="console, admin, api, cli or engine")
    address = models.GenericIPAddressField(null=True, help_text="Where the request came from.")
    act = models.CharField(max_length=64, help_text="What was done, such as command.retract.")
    target_type = models.CharField(max_length=32)
    target_id = models.CharField(max_length=64)
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)

    class Meta:
        verbose_name_plural = "audit entries"
        indexes = [
            # The audit page: an organization's entries, newest first.
            models.Index(fields=["organization", "-id"], name="audit_newest"),
            # "What happened to this thing?"
            models.Index(fields=["target_type", "target_id"], name="audit_target"),
            # "What did this person do?", and who is in the trail at all.
            models.Index(fields=["organization", "user", "-id"], name="audit_of_person"),
            # What people set up and switched, which drowns in the traffic of commands and events.
            models.Index(
                fields=["organization", "-id"],
                condition=~models.Q(target_type__in=TRAFFIC),
                name="audit_beside_traffic",
            ),
        ]
        triggers = guards.append_only()

    def __str__(self) -> str:
        return f"{self.act} {self.target_type} {self.target_id}"


class Notice(models.Model):
    """Something that one person is told once, by mail. This row is the outbox.

    Like a delivery it either waits for a try (``next_try_at``) or has one under way (``lease_until``)
    until it is settled. Those of one person and kind that wait together become one mail (``mail_id``).
    """

    class State(models.TextChoices):
        WAITING = "waiting"
        SENT = "sent"
        GAVE_UP = "gave_up"

    class Channel(models.TextChoices):
        """How it reached the person: without a mail server, notices are shown on their page alone."""

        MAIL = "mail"
        PAGE = "page"

    organization = models.ForeignKey(
        Organization, on_delete=models.PROTECT, related_name="notices", db_index=False
    )
    recipient = models.ForeignKey(
        User, on_delete=models.PROTECT, related_name="notices", db_index=False
    )
    kind = models.CharField(max_length=32, choices=[(kind, kind) for kind in Kind])
    fact = models.CharField(max_length=120, help_text="Names what happened: told once a person.")
    subject_id = models.UUIDField(help_text="The endpoint or command.")
    facts = models.JSONField(help_text="What the mail says about it, as it was then.")
    happened_at = models.DateTimeField(db_default=Now(), editable=False)
    state = models.CharField(max_length=16, choices=State, default=State.WAITING)
    tries = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True)
    mail_id = models.UUIDField(null=True, help_text="The mail of the last try.")
    error = models.CharField(max_length=300, blank=True, help_text="Why the last try failed.")
    channel = models.CharField(max_length=8, choices=Channel, blank=True)
    address = models.EmailField(blank=True, help_text="Where it was sent.")
    settled_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            # The page: an organization's notices, newest first, and a person's own.
            models.Index(fields=["organization", "-id"], name="notice_newest"),
            models.Index(fields=["recipient", "organization", "-id"], name="notice_newest_of_one"),
            # The claim: whose notices wait, and since when.
            models.Index(
                fields=["recipient", "organization", "kind", "next_try_at"],
                condition=models.Q(next_try_at__isnull=False),
                name="notice_waiting",
            ),
            # The claim again: whose mail is under way, and which was left behind?
            models.Index(
                fields=["lease_until"],
                condition=models.Q(lease_until__isnull=False),
                name="notice_in_flight",
            ),
            # The claim again: when was the last mail of this kind to this person?
            models.Index(
                fields=["recipient", "organization", "kind", "-settled_at"],
                condition=models.Q(state="sent"),
                name="notice_last_sent",
            ),
        ]
        constraints = [
            models.UniqueConstraint("recipient", "fact", name="one_notice_a_fact"),
            models.CheckConstraint(
                condition=models.Q(state="waiting", settled_at__isnull=True)
                & (
                    models.Q(next_try_at__isnull=False, lease_until__isnull=True)
                    | models.Q(next_try_at__isnull=True, lease_until__isnull=False)
                )
                | ~models.Q(state="waiting")
                & models.Q(
                    settled_at__isnull=False, next_try_at__isnull=True, lease_until__isnull=True
                ),
                name="notice_waits_or_is_in_flight_or_settled",
            ),
            models.CheckConstraint(
                condition=~models.Q(state="sent") | ~models.Q(channel=""),
                name="sent_notice_says_how",
            ),
        ]
        triggers = [
            guards.starts_as("state", "waiting"),
            guards.frozen_row_once_set("settled_at"),
            guards.frozen(
                "id",
                "organization",
                "recipient",
                "kind",
                "fact",
                "subject_id",
                "facts",
                "happened_at",
            ),
            *guards.never_deleted(),
        ]

    def __str__(self) -> str:
        return self.fact
