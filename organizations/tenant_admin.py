"""What every model's admin here is built on: tenancy, records that stay, and lists that stay fast.

Django's own model permissions play no part. A staff member sees the rows of the organizations he is a
member of, and may do there what his role allows; a superuser sees all rows, and acts on them as the
member that he is or is not.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db import models
from django.db.models import ForeignKey, Q, QuerySet
from django.forms import ModelChoiceField
from django.http import Http404, HttpRequest
from django.utils.functional import cached_property

from organizations import audit
from organizations.actors import Actor
from organizations.console.words import inert
from organizations.models import Membership, Organization, User
from organizations.rules.roles import permissions_of

Row = TypeVar("Row", bound=models.Model)

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin
else:

    class ModelAdmin(admin.ModelAdmin):
        """Django's ModelAdmin, which only its type stubs know to be generic."""

        def __class_getitem__(cls, _: Any) -> type:
            return cls


# Rows that a list counts, and hence pages through, at most: whoever looks further back filters. A
# count of ten million rows takes seconds, and so does the last of their pages.
COUNTED = 1000
# Characters of somebody's text that a row of a list shows, and its own page.
IN_A_ROW = 80
ON_A_PAGE = 4000


def capped(text: str, limit: int = IN_A_ROW) -> str:
    """The start of somebody's text, with nothing in it that acts on its surroundings."""
    return inert(text[:limit]) + ("…" if len(text) > limit else "")


# --- who is at work -----------------------------------------------------------------------------


def person(request: HttpRequest) -> User:
    """Who sent the request; the admin site lets nobody in without a login."""
    return cast(User, request.user)


def memberships(request: HttpRequest) -> dict[UUID, Membership]:
    """The person's memberships by organization, read once a request."""
    known: dict[UUID, Membership] | None = getattr(request, "_memberships", None)
    if known is None:
        rows = Membership.objects.filter(user=person(request))
        known = {row.organization_id: row for row in rows.select_related("organization", "user")}
        request._memberships = known  # type: ignore[attr-defined]
    return known


def organizations_where(request: HttpRequest, permission: str) -> list[UUID]:
    """The organizations in which the person's role grants the permission."""
    return [
        organization_id
        for organization_id, membership in memberships(request).items()
        if permission in permissions_of(membership.role)
    ]


def acting_in(request: HttpRequest, organization: Organization) -> Actor:
    """The person at work in the organization. A superuser who is no member has no permission there:
    what he does all the same is on record under his name.
    """
    address = request.META.get("REMOTE_ADDR") or None
    membership = memberships(request).get(organization.pk)
    if membership:
        return Actor.of(membership, via="admin", address=address)
    return Actor(organization, person(request), "", "admin", frozenset(), address=address)


# --- lists --------------------------------------------------------------------------------------


class BoundedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts to ``COUNTED`` and no further."""

    @cached_property
    def _counted(self) -> int:
        rows = cast("QuerySet[Any]", self.object_list)
        return rows.order_by()[: COUNTED + 1].count()

    @property
    def count(self) -> int:
        return min(self._counted, COUNTED)

    @property
    def has_uncounted_rows(self) -> bool:
        return self._counted > COUNTED


class FixedOrderChangeList(ChangeList):
    """Keeps the one order that an index serves, whatever the address asks for."""

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        return list(self.model_admin.get_ordering(request))

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        # Django's line of "1000 results" knows nothing of rows that were not counted; ours does.
        self.full_result_count = self.result_count


class RecordAdmin(ModelAdmin[Row]):
    """Rows to look at: nothing is added, changed or deleted, unless a subclass allows it.

    ``lookups`` are the filters that an address may carry besides those of ``list_filter``. No other is
    obeyed: by filters on a secret column one could guess it, letter by letter.
    """

    ordering = ("-pk",)
    sortable_by = ()
    list_per_page = 50
    list_max_show_all = 0
    show_full_result_count = False
    # Facets count the whole table once for each choice of each filter.
    show_facets = admin.ShowFacets.NEVER
    paginator = BoundedPaginator
    # Without it there is no "select all rows on all pages".
    actions_selection_counter = False
    lookups: ClassVar[Collection[str]] = ()
    # Indexed columns that a search compares with an id; without them, Django searches search_fields.
    searched_ids: ClassVar[tuple[str, ...]] = ()

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return False

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        allowed = set(self.lookups)
        for entry in self.get_list_filter(request):
            if isinstance(entry, str):
                allowed |= {f"{entry}__exact", f"{entry}__isnull"}
            elif isinstance(entry, type) and issubclass(entry, admin.SimpleListFilter):
                allowed.add(entry.parameter_name or "")
        return lookup in allowed

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Row | None:
        """A row that is not there, or not for this person, is not found. Django would send him away."""
        row = super().get_object(request, object_id, from_field)
        if row is None:
            raise Http404
        return row

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return FixedOrderChangeList

    def get_search_fields(self, request: HttpRequest) -> Any:
        return self.searched_ids or self.search_fields

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Row], bool]:
        term = search_term.strip()
        if not self.searched_ids or not term:
            return super().get_search_results(request, queryset, term)
        return queryset.filter(self.search(term)), False

    def search(self, term: str) -> Q:
        """What a search by id finds: nothing, when the term is no id."""
        try:
            wanted = UUID(term)
        except ValueError:
            return Q(pk__in=[])
        return functools.reduce(operator.or_, (Q(**{name: wanted}) for name in self.searched_ids))


class InstallationAdmin(RecordAdmin[Row]):
    """What belongs to the installation and to no organization: superusers alone look at it."""

    def has_view_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return person(request).is_superuser


# --- tenancy ------------------------------------------------------------------------------------


class OrganizationFilter(admin.SimpleListFilter):
    """Narrows a list to one organization, for those who see several."""

    title = "organization"
    parameter_name = "organization"
    # More would make the page long; any other organization's own page links to its lists.
    CHOICES = 100

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        rows = Organization.objects.order_by("-pk")
        if not person(request).is_superuser:
            rows = rows.filter(pk__in=memberships(request))
        choices = [(str(row.pk), capped(row.name)) for row in rows[: self.CHOICES]]
        return choices if len(choices) > 1 else []

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        try:
            chosen = UUID(self.value() or "")
        except ValueError:
            return queryset
        return queryset.filter(self.model_admin.within([chosen]))

    def __init__(
        self, request: HttpRequest, params: dict[str, Any], model: Any, model_admin: Any
    ) -> None:
        self.model_admin = model_admin
        super().__init__(request, params, model, model_admin)


class TenantAdmin(RecordAdmin[Row]):
    """Rows of organizations.

    ``organization_path`` leads from a row to its organization. ``edit_permission`` is what adding and
    changing takes, in the row's organization; None makes the rows a record that nobody touches.
    """

    organization_path: ClassVar[str] = "organization"
    view_permission: ClassVar[str] = "commands:read"
    edit_permission: ClassVar[str | None] = None
    # Superusers set up organizations that they are no members of. They do not run them.
    superusers_edit: ClassVar[bool] = False
    # Fixed once the row exists.
    readonly_later: ClassVar[tuple[str, ...]] = ()

    # -- which rows --

    def within(self, organizations: Collection[UUID]) -> Q:
        """The rows of these organizations."""
        return Q(**{f"{self.organization_path}__in": organizations})

    def get_queryset(self, request: HttpRequest) -> QuerySet[Row]:
        rows = super().get_queryset(request)
        if person(request).is_superuser:
            return rows
        return rows.filter(self.within(organizations_where(request, self.view_permission)))

    def organization_of(self, row: Row) -> Organization:
        found: Any = row
        for step in self.organization_path.split("__"):
            found = getattr(found, step)
        return cast(Organization, found)

    # -- who may --

    def may(self, request: HttpRequest, permission: str, row: Row | None = None) -> bool:
        """Whether the person has the permission, in the row's organization or, without one, in any."""
        granting = organizations_where(request, permission)
        return bool(granting) if row is None else self.organization_of(row).pk in granting

    def has_view_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return person(request).is_superuser or self.may(request, self.view_permission)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.has_change_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        if self.edit_permission is None:
            return False
        return self._edits_everything(request) or self.may(request, self.edit_permission, obj)

    def _edits_everything(self, request: HttpRequest) -> bool:
        return self.superusers_edit and person(request).is_superuser

    # -- forms --

    def get_readonly_fields(self, request: HttpRequest, obj: Row | None = None) -> Any:
        return (*self.readonly_fields, *(self.readonly_later if obj else ()))

    def formfield_for_foreignkey(
        self, db_field: ForeignKey[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> ModelChoiceField[Any] | None:
        """Only rows of organizations in which the person may edit can be chosen."""
        related = self.admin_site.get_model_admin(db_field.related_model)
        assert isinstance(related, TenantAdmin)
        choices = related.get_queryset(request)
        if not self._edits_everything(request):
            editable = organizations_where(request, self.edit_permission or "")
            choices = choices.filter(related.within(editable))
        return super().formfield_for_foreignkey(db_field, request, queryset=choices, **kwargs)

    def save_model(self, request: HttpRequest, obj: Row, form: Any, change: bool) -> None:
        """Write what changed and nothing else: another column may have moved since the form was shown.
        The entry in the audit trail is written in the same transaction.
        """
        if change and not form.changed_data:
            return
        obj.save(update_fields=form.changed_data if change else None)
        audit.record(
            acting_in(request, self.organization_of(obj)),
            f"{obj._meta.model_name}.{'edit' if change else 'create'}",
            obj,
            before=_plain(form.initial, form.changed_data) if change else None,
            after=_plain(form.cleaned_data, form.changed_data),
        )


def _plain(values: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """The named values as the audit trail keeps them."""
    return {name: _plain_value(values.get(name)) for name in names}


def _plain_value(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str | list):
        return value
    return str(value.pk if isinstance(value, models.Model) else value)
