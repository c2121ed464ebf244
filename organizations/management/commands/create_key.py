"""``manage.py create_key``: an API key for somebody who is a member already."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils import timezone

from organizations import audit, keys
from organizations.actors import Actor
from organizations.models import Membership


class Command(BaseCommand):
    help = (
        "Make an API key for a member of an organization. The key is printed here and nowhere else."
        " Without --scope it has every scope that the member's role allows."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", help="Whose key it is.")
        parser.add_argument("--organization", type=UUID, help="Its id, for a member of several.")
        parser.add_argument("--name", required=True, help="What the key is for.")
        parser.add_argument("--scope", action="append", help="Such as commands:ack; repeat it.")
        parser.add_argument("--days", type=int, help="Expires after so many days.")

    def handle(
        self,
        *,
        email: str,
        organization: UUID | None,
        name: str,
        scope: list[str] | None,
        days: int | None,
        **options: Any,
    ) -> None:
        member = _member(email, organization)
        expires_at = timezone.now() + timedelta(days=days) if days else None
        with transaction.atomic():
            try:
                key, text = keys.create_key(
                    member.organization, member.user, name, scope, expires_at
                )
            except ValueError as refusal:
                raise CommandError(str(refusal)) from None
            audit.record(Actor.of(member, via="cli"), "api_key.create", key, after=keys.facts(key))
        self.stdout.write(text)


def _member(email: str, organization: UUID | None) -> Membership:
    members = Membership.objects.filter(user__email__iexact=email)
    if organization:
        members = members.filter(organization=organization)
    found = list(members.select_related("organization", "user")[:2])
    if len(found) > 1:
        raise CommandError(f"{email} belongs to several organizations: say which (--organization).")
    if not found:
        raise CommandError(f"{email} belongs to no such organization.")
    return found[0]
