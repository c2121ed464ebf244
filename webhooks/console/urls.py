"""Addresses of endpoints."""

from django.urls import path

from webhooks.console import acts, views

urlpatterns = [
    path("endpoints/", views.endpoints, name="endpoints"),
    path("endpoints/new/", acts.register, name="register_endpoint"),
    path("endpoints/<uuid:pk>/", views.endpoint, name="endpoint"),
    path("endpoints/<uuid:pk>/disable/", acts.disable, name="disable_endpoint"),
    path("endpoints/<uuid:pk>/edit/", acts.edit, name="edit_endpoint"),
    path("endpoints/<uuid:pk>/rotate-secret/", acts.rotate_secret, name="rotate_secret"),
    path("endpoints/<uuid:pk>/archive/", acts.archive, name="archive_endpoint"),
    path("endpoints/<uuid:pk>/ping/", acts.ping, name="ping_endpoint"),
    path("endpoints/<uuid:pk>/enable/", acts.enable, name="enable_endpoint"),
]
