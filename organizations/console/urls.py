"""Addresses that belong to no part of the console."""

from django.urls import path

from organizations.console import views

urlpatterns = [
    path("organization/", views.choose_organization, name="choose_organization"),
]
