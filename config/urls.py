"""Every address of the console."""

from django.contrib import admin
from django.urls import include, path

from organizations.health import healthz

urlpatterns = [
    path("healthz", healthz),
    path("admin/", admin.site.urls),
    path("accounts/", include("allauth.account.urls")),
    path("", include("organizations.console.urls")),
    path("", include("webhooks.console.urls")),
    path("", include("commands.console.urls")),
    path("api/", include("organizations.api.urls")),
    path("api/", include("commands.api.urls")),
    path("api/webhooks/", include("webhooks.api.urls")),
    path("api/", include("webhooks.api.event_urls")),
]

# Problems in JSON under /api/, pages elsewhere.
handler400 = "organizations.api.problems.bad_request"
handler403 = "organizations.api.problems.permission_denied"
handler404 = "organizations.api.problems.page_not_found"
handler500 = "organizations.api.problems.server_error"
