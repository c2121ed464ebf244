"""Addresses of endpoints."""

from django.urls import path

from webhooks.console import views

urlpatterns = [
    path("endpoints/", views.endpoints, name="endpoints"),
    path("endpoints/new/", views.register, name="register_endpoint"),
    path("endpoints/<uuid:pk>/", views.endpoint, name="endpoint"),
    path("endpoints/<uuid:pk>/disable/", views.disable, name="disable_endpoint"),
    path("endpoints/<uuid:pk>/enable/", views.enable, name="enable_endpoint"),
]
