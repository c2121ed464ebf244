"""The API's description (OpenAPI 3.1) and the page that renders it. Both are open to everybody."""

from __future__ import annotations

from csp.decorators import csp_update
from django.utils.decorators import method_decorator
from django.views.generic import TemplateView
from drf_spectacular.renderers import (
    OpenApiJsonRenderer,
    OpenApiJsonRenderer2,
    OpenApiYamlRenderer,
    OpenApiYamlRenderer2,
)
from drf_spectacular.views import SpectacularAPIView


class SchemaView(SpectacularAPIView):
    """The description in JSON, or in YAML for a client that asks for it."""

    renderer_classes = [
        OpenApiJsonRenderer2,
        OpenApiJsonRenderer,
        OpenApiYamlRenderer2,
        OpenApiYamlRenderer,
    ]


# Swagger UI draws its icons from data: URLs in its style sheet.
@method_decorator(csp_update({"img-src": ["data:"]}), name="dispatch")
class DocsView(TemplateView):
    """Swagger UI, served from here, started by a script file of its own."""

    template_name = "api/docs.html"
