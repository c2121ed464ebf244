"""Addresses under /api/webhooks/."""

from django.urls import path

from webhooks.api import views

urlpatterns = [
    path("deliveries", views.AttemptListView.as_view()),
    path("endpoints", views.EndpointListView.as_view()),
    path("endpoints/<str:endpoint_id>", views.EndpointView.as_view()),
    path("endpoints/<str:endpoint_id>/archive", views.ArchiveEndpointView.as_view()),
    path("endpoints/<str:endpoint_id>/disable", views.DisableEndpointView.as_view()),
    path("endpoints/<str:endpoint_id>/enable", views.EnableEndpointView.as_view()),
    path("endpoints/<str:endpoint_id>/ping", views.PingEndpointView.as_view()),
    path("endpoints/<str:endpoint_id>/rotate-secret", views.RotateSecretView.as_view()),
]
