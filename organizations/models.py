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
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint("organization", "user", name="one_role_an_organization"),
            models.CheckConstraint(
                condition=models.Q(role__in=roles.ROLES), name="membership_role_known"
            ),
        ]

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
    user = models.ForeignKey(User, on_delete=models.PROTECT, null=True, related_name="+")
    api_key = models.ForeignKey(ApiKey, on_delete=models.PROTECT, null=True, related_name="+")
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
        ]
        triggers = guards.append_only()

    def __str__(self) -> str:
        return f"{self.act} {self.target_type} {self.target_id}"
