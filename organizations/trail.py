"""Reads the audit trail: newest first, by what an index serves, and never further than was said.

An index serves a person's entries and those beside the traffic. Whatever else a filter asks is looked
for in a bounded part at a time; see ``paging``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet

from organizations.models import ApiKey, AuditEntry, Organization, User
from organizations.paging import Listing, Page
from organizations.rules.acts import TARGET_TYPES, TRAFFIC, is_traffic

# Who acted, for the choice of a filter; each is one step along an index.
PEOPLE_AT_MOST: Final = 500
# An entry's id is given within its INSERT, its time is when that statement began.
SKEW: Final = timedelta(seconds=1)

# The first entry at or after an instant: ids grow with time, so that halving the range finds it.
FIRST_SINCE = """
WITH RECURSIVE half(low, high) AS (
    SELECT (SELECT min(id) FROM organizations_auditentry WHERE organization_id = %(organization)s),
           (SELECT max(id) + 1 FROM organizations_auditentry WHERE organization_id = %(organization)s)
    UNION ALL
    SELECT CASE WHEN probe.at < %(at)s THEN probe.id + 1 ELSE low END,
           CASE WHEN probe.at < %(at)s THEN high ELSE (low + high) / 2 END
      FROM half,
           LATERAL (SELECT id, at FROM organizations_auditentry
                     WHERE organization_id = %(organization)s AND id >= (low + high) / 2
                     ORDER BY id LIMIT 1) AS probe
     WHERE low < high)
SELECT low FROM half ORDER BY high - low LIMIT 1
"""

# One step along the index from each person to the next, however many entries lie between.
WHO_ACTED = """
WITH RECURSIVE person(id) AS (
    (SELECT user_id FROM organizations_auditentry
      WHERE organization_id = %(organization)s AND user_id IS NOT NULL
      ORDER BY user_id LIMIT 1)
    UNION ALL
    SELECT (SELECT user_id FROM organizations_auditentry
             WHERE organization_id = %(organization)s AND user_id > person.id
             ORDER BY user_id LIMIT 1)
      FROM person WHERE person.id IS NOT NULL)
SELECT id FROM person WHERE id IS NOT NULL LIMIT %(limit)s
"""


@dataclass(frozen=True)
class Filters:
    """What somebody looks for. ``who`` is a person or an API key, ``until`` itself is not included."""

    who: User | ApiKey | None = None
    act: str = ""
    target_types: Sequence[str] = ()
    target_id: str = ""
    since: datetime | None = None
    until: datetime | None = None

    @property
    def user_id(self) -> UUID | None:
        if isinstance(self.who, ApiKey):
            return self.who.user_id
        return self.who.pk if self.who else None

    @property
    def beside_traffic(self) -> bool:
        """Whether nothing of the traffic can match."""
        types = self.target_types and not set(self.target_types) & set(TRAFFIC)
        return bool(types or (self.act and not is_traffic(self.act)))


def search(organization: Organization, filters: Filters, before: int | None) -> Page[AuditEntry]:
    """The newest entries that match, or those older than ``before``."""
    entries, wanted = _walked(organization, filters), _wanted(filters)
    if filters.target_id:
        # So few that nothing has to be looked for.
        entries, wanted = entries.filter(wanted), Q()
    return Listing(entries.select_related("user", "api_key"), "pk", "at").page(before, wanted)


def _walked(organization: Organization, filters: Filters) -> QuerySet[AuditEntry]:
    """The entries as far as an index leads to them in their order."""
    entries = AuditEntry.objects.filter(organization=organization)
    if filters.user_id:
        entries = entries.filter(user=filters.user_id)
    if filters.target_id:
        entries = entries.filter(target_type__in=TARGET_TYPES, target_id=filters.target_id)
    elif filters.beside_traffic and not filters.user_id:
        entries = entries.exclude(target_type__in=TRAFFIC)
    if filters.since:
        since = _first_since(organization, filters.since - SKEW)
        entries = entries.filter(pk__gte=since, at__gte=filters.since)
    if filters.until:
        until = _first_since(organization, filters.until + SKEW)
        entries = entries.filter(pk__lt=until, at__lt=filters.until)
    return entries


def _wanted(filters: Filters) -> Q:
    """What no index serves."""
    wanted = Q()
    if isinstance(filters.who, ApiKey):
        wanted &= Q(api_key=filters.who)
    if filters.act:
        wanted &= Q(act=filters.act)
    if filters.target_types:
        wanted &= Q(target_type__in=filters.target_types)
    return wanted


def _first_since(organization: Organization, at: datetime) -> int:
    """The id of the first entry that is not older; one past the last when there is none."""
    with connection.cursor() as cursor:
        cursor.execute(FIRST_SINCE, {"organization": organization.pk, "at": at})
        row = cursor.fetchone()
    return int(row[0] or 0)


def who_acted(organization: Organization) -> list[User]:
    """Everybody who is in the trail, members or not any more, by address."""
    with connection.cursor() as cursor:
        cursor.execute(WHO_ACTED, {"organization": organization.pk, "limit": PEOPLE_AT_MOST})
        ids = [pk for (pk,) in cursor.fetchall()]
    return list(User.objects.filter(pk__in=ids).order_by("email"))


def makers_of(keys: Sequence[ApiKey]) -> dict[UUID, str]:
    """Who made these keys, by address, as far as that is on record."""
    made = AuditEntry.objects.filter(
        target_type="apikey", target_id__in=[str(key.pk) for key in keys], act="api_key.create"
    )
    return {UUID(pk): email for pk, email in made.values_list("target_id", "user__email")}
