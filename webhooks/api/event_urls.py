"""Addresses under /api/events."""

from django.urls import path

from webhooks.api import events

urlpatterns = [
    path("events", events.EventListView.as_view()),
    path("events/types", events.EventTypesView.as_view()),
    path("events/<str:event_id>", events.EventView.as_view()),
]
