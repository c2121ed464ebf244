"""Every address of the console."""

from django.contrib import admin
from django.urls import include, path

from organizations.health import healthz

urlpatterns = [
    path("healthz", healthz),
    path("admin/", admin.site.urls),
    path("accounts/", include("allauth.account.urls")),
]
