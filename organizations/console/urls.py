"""Addresses that belong to no part of the console."""

from django.urls import path

from organizations.console import audit, keys, members, notices, views

urlpatterns = [
    path("organization/", views.choose_organization, name="choose_organization"),
    path("notices/", notices.notices, name="notices"),
    path("notices/choose/", notices.choose_notices, name="choose_notices"),
    path("audit/", audit.audit, name="audit"),
    path("members/", members.members, name="members"),
    path("members/add/", members.add, name="add_member"),
    path("members/<int:pk>/role/", members.change_role, name="change_role"),
    path("members/<int:pk>/invite/", members.invite_again, name="invite_again"),
    path("members/<int:pk>/remove/", members.remove, name="remove_member"),
    path("members/keys/new/", keys.make, name="make_key"),
    path("members/keys/<uuid:pk>/revoke/", keys.revoke, name="revoke_key"),
]
