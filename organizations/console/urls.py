"""Addresses that belong to no part of the console."""

from django.urls import path

from organizations.console import notices, views

urlpatterns = [
    path("organization/", views.choose_organization, name="choose_organization"),
    path("notices/", notices.notices, name="notices"),
    path("notices/choose/", notices.choose_notices, name="choose_notices"),
]
