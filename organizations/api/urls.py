"""The description of the API, and a page to read and try it."""

from django.urls import path

from organizations.api.docs import DocsView, SchemaView

urlpatterns = [
    path("schema", SchemaView.as_view(), name="api-schema"),
    path("docs", DocsView.as_view(), name="api-docs"),
]
