"""The admin of organizations and their people, and of the site itself: its login is the console's."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from uuid import UUID

from allauth.account.decorators import secure_admin_login
from allauth.account.models import EmailAddress, EmailConfirmation
from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.forms import AdminUserCreationForm
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html

from organizations import audit, keys
from organizations.actors import NotPermitted
from organizations.admin_actions import Question, confirm
from organizations.models import ApiKey, AuditEntry, Membership, Notice, Organization, User
from organizations.rules.roles import OWNER
from organizations.tenant_admin import (
    InstallationAdmin,
    OrganizationFilter,
    TenantAdmin,
    acting_in,
    capped,
    organizations_where,
    person,
)

# --- the site -----------------------------------------------------------------------------------


def change_password(request: HttpRequest, extra_context: Any = None) -> HttpResponse:
    """Passwords are changed where people log in, under the same rules."""
    return redirect("account_change_password")


admin.site.site_title = admin.site.site_header = "Command console"
admin.site.index_title = "Administration"
admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]
admin.site.password_change = change_password  # type: ignore[method-assign, assignment]
admin.site.disable_action("delete_selected")
# Roles are memberships here, and a confirmation's key lets its reader confirm.
admin.site.unregister(Group)
admin.site.unregister(EmailAddress)
if admin.site.is_registered(EmailConfirmation):
    admin.site.unregister(EmailConfirmation)


@admin.register(EmailAddress)
class EmailAddressAdmin(InstallationAdmin[Any]):
    """Addresses as the login knows them. People change their own."""

    list_display = ("email", "user", "primary", "verified")
    list_select_related = ("user",)


# --- organizations and people -------------------------------------------------------------------


@admin.register(Organization)
class OrganizationAdmin(TenantAdmin[Organization]):
    """Owners rename theirs; superusers make new ones."""

    edit_permission = "members:write"
    superusers_edit = True
    list_display = ("name", "id", "created_at")
    search_fields = ("name",)
    fields = ("id", "name", "created_at", "lists")
    readonly_fields = ("id", "created_at", "lists")

    def within(self, organizations: Collection[UUID]) -> Q:
        return Q(pk__in=organizations)

    def organization_of(self, row: Organization) -> Organization:
        return row

    def has_add_permission(self, request: HttpRequest) -> bool:
        return person(request).is_superuser

    @admin.display(description="Its rows")
    def lists(self, organization: Organization) -> str:
        lists = ("commands_command", "webhooks_endpoint", "organizations_auditentry")
        addresses = [reverse(f"admin:{name}_changelist") for name in lists]
        return format_html(
            '<a href="{}?organization={}">Commands</a> · <a href="{}?organization={}">Endpoints</a>'
            ' · <a href="{}?organization={}">Audit entries</a>',
            *(part for address in addresses for part in (address, organization.pk)),
        )


class NewUserForm(AdminUserCreationForm):  # type: ignore[type-arg]
    """A new person, by email address; with a password or, for later, without."""

    class Meta:
        model = User
        fields = ("email",)


@admin.register(User)
class UserAdmin(TenantAdmin[User], DjangoUserAdmin):  # type: ignore[type-arg]
    """People. Only superusers change them: a person may belong to several organizations, and whoever
    sets his password in one has entered the others.
    """

    add_form = NewUserForm
    list_display = ("email", "first_name", "last_name", "is_active", "is_staff", "is_superuser")
    list_filter = ()
    search_fields = ("email", "first_name", "last_name")
    filter_horizontal = ()
    fieldsets = (
        (None, {"fields": ("email", "first_name", "last_name", "new_password")}),
        ("Access", {"fields": ("is_active", "is_staff", "is_superuser")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = ((None, {"fields": ("email", "usable_password", "password1", "password2")}),)
    readonly_fields = ("new_password", "last_login", "date_joined")
    # The login keeps its own record of the addresses a person has shown to be his.
    readonly_later = ("email",)

    def within(self, organizations: Collection[UUID]) -> Q:
        members = Membership.objects.filter(organization__in=organizations)
        return Q(pk__in=members.values("user"))

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return person(request).is_superuser

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        if obj and not self.has_change_permission(request, obj):
            return ((None, {"fields": ("email", "first_name", "last_name", "is_active")}),)
        return super().get_fieldsets(request, obj)

    @admin.display(description="Password")
    def new_password(self, user: User) -> str:
        address = reverse("admin:auth_user_password_change", args=[user.pk])
        return format_html('<a href="{}">Set a new password</a>', address)

    @transaction.atomic
    def user_change_password(
        self, request: HttpRequest, id: str, form_url: str = ""
    ) -> HttpResponse:
        return super().user_change_password(request, id, form_url)

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        obj.save(update_fields=form.changed_data if change else None)
        if change and form.changed_data:
            before = {name: form.initial[name] for name in form.changed_data}
            after = {name: form.cleaned_data[name] for name in form.changed_data}
            self._record(request, "user.edit", obj, before=before, after=after)

    def log_change(self, request: HttpRequest, obj: User, message: Any) -> Any:
        """Django's own page for a new password calls nothing else of ours."""
        match = request.resolver_match
        if match and match.url_name == "auth_user_password_change":
            self._record(request, "user.set_password", obj)
        return super().log_change(request, obj, message)

    def _record(self, request: HttpRequest, act: str, user: User, **facts: Any) -> None:
        """On record in each organization that the person belongs to."""
        for membership in user.memberships.select_related("organization"):
            audit.record(acting_in(request, membership.organization), act, user, **facts)


class MembershipForm(forms.ModelForm):  # type: ignore[type-arg]
    """A role, as long as somebody stays to give roles."""

    class Meta:
        model = Membership
        fields = ("organization", "user", "role")

    def clean_role(self) -> str:
        role: str = self.cleaned_data["role"]
        membership = self.instance
        if membership.pk and membership.role == OWNER != role:
            owners = Membership.objects.filter(organization=membership.organization, role=OWNER)
            if not owners.exclude(pk=membership.pk).exists():
                raise ValidationError(
                    "An organization keeps an owner. Make somebody else one first."
                )
        return role


@admin.register(Membership)
class MembershipAdmin(TenantAdmin[Membership]):
    """Who is what where: for owners to change."""

    edit_permission = "members:write"
    superusers_edit = True
    form = MembershipForm
    list_display = ("user", "role", "organization", "created_at")
    list_select_related = ("user", "organization")
    list_filter = (OrganizationFilter,)
    lookups = ("user", "user__id__exact")
    fields = ("organization", "user", "role", "created_at")
    readonly_fields = ("created_at",)
    readonly_later = ("organization", "user")
    autocomplete_fields = ("organization", "user")


# --- keys ---------------------------------------------------------------------------------------

REVOKE = Question[ApiKey](
    title="Revoke API keys",
    consequences=(
        "Requests with these keys are refused from now on.",
        "A revoked key never works again: its user needs a new one.",
    ),
    button="Revoke",
    describe=lambda key: f"{key}, of {key.user} in {key.organization}",
)


@admin.register(ApiKey)
class ApiKeyAdmin(TenantAdmin[ApiKey]):
    """Keys to look at and to revoke. They are made where their text can be shown once."""

    list_display = (
        "name",
        "prefix",
        "user",
        "organization",
        "created_at",
        "expires_at",
        "revoked_at",
        "last_used_at",
    )
    list_select_related = ("user", "organization")
    list_filter = (OrganizationFilter,)
    lookups = ("user", "user__id__exact")
    search_fields = ("prefix__exact",)
    search_help_text = "The prefix of a key: its eight characters after cck_."
    fields = (
        "id",
        "name",
        "prefix",
        "organization",
        "user",
        "scopes",
        "created_at",
        "expires_at",
        "revoked_at",
        "last_used_at",
    )
    actions = ("revoke",)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return self.may(request, "members:write")

    @admin.action(description="Revoke selected API keys", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> HttpResponse | None:
        answer = confirm(self, request, REVOKE)
        if isinstance(answer, HttpResponse):
            return answer
        for key in answer.rows:
            self._revoke_one(request, key)
        return None

    def _revoke_one(self, request: HttpRequest, key: ApiKey) -> None:
        if key.revoked_at:
            self.message_user(request, f"{key} was revoked before.")
            return
        try:
            keys.revoke(acting_in(request, key.organization), key)
        except NotPermitted:
            self.message_user(
                request, f"{key}: only an owner of its organization may revoke it.", messages.ERROR
            )
        else:
            self.message_user(request, f"{key} is revoked.", messages.SUCCESS)


# --- the audit trail ----------------------------------------------------------------------------


@admin.register(AuditEntry)
class AuditEntryAdmin(TenantAdmin[AuditEntry]):
    """Who did what: for owners to read, for nobody to touch."""

    view_permission = "audit:read"
    list_display = ("at", "act", "target", "user", "via", "address", "organization")
    list_select_related = ("user", "organization")
    list_filter = (OrganizationFilter,)
    searched_ids = ("target_id",)
    search_help_text = "The id of what it was done to."
    fields = (
        "at",
        "organization",
        "user",
        "api_key",
        "via",
        "address",
        "act",
        "target_type",
        "target_id",
        "before",
        "after",
    )

    def search(self, term: str) -> Q:
        """By the index on type and id, whatever the type is."""
        types = [model._meta.model_name for model in self.admin_site._registry]
        return Q(target_type__in=types, target_id=term)

    @admin.display(description="target")
    def target(self, entry: AuditEntry) -> str:
        return capped(f"{entry.target_type} {entry.target_id}")


# --- notices ------------------------------------------------------------------------------------


@admin.register(Notice)
class NoticeAdmin(TenantAdmin[Notice]):
    """What people were told: an owner reads all of it, everybody else what he was told himself."""

    list_display = (
        "kind",
        "recipient",
        "state",
        "channel",
        "tries",
        "next_try_at",
        "settled_at",
        "why",
        "happened_at",
        "organization",
    )
    list_select_related = ("recipient", "organization")
    list_filter = (OrganizationFilter,)
    fields = (
        "organization",
        "recipient",
        "address",
        "kind",
        "subject_id",
        "facts",
        "happened_at",
        "state",
        "channel",
        "tries",
        "next_try_at",
        "lease_until",
        "mail_id",
        "error",
        "settled_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Notice]:
        rows = super().get_queryset(request)
        if person(request).is_superuser:
            return rows
        owned = organizations_where(request, AuditEntryAdmin.view_permission)
        return rows.filter(Q(organization__in=owned) | Q(recipient=person(request)))

    @admin.display(description="error")
    def why(self, notice: Notice) -> str:
        return capped(notice.error)
