"""Addresses of endpoints, deliveries and events."""

from django.urls import path

from webhooks.console.views import acts, deliveries, endpoints, events

urlpatterns = [
    path("endpoints/", endpoints.endpoints, name="endpoints"),
    path("endpoints/new/", acts.register, name="register_endpoint"),
    path("endpoints/<uuid:pk>/", endpoints.endpoint, name="endpoint"),
    path("endpoints/<uuid:pk>/disable/", acts.disable, name="disable_endpoint"),
    path("endpoints/<uuid:pk>/edit/", acts.edit, name="edit_endpoint"),
    path("endpoints/<uuid:pk>/rotate-secret/", acts.rotate_secret, name="rotate_secret"),
    path("endpoints/<uuid:pk>/archive/", acts.archive, name="archive_endpoint"),
    path("endpoints/<uuid:pk>/ping/", acts.ping, name="ping_endpoint"),
    path("endpoints/<uuid:pk>/enable/", acts.enable, name="enable_endpoint"),
    path("deliveries/", deliveries.deliveries, name="deliveries"),
    path("deliveries/<uuid:pk>/", deliveries.delivery, name="delivery"),
    path("events/", events.events, name="events"),
    path("events/<uuid:pk>/", events.event, name="event"),
]
