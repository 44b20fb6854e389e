"""Every path under /api/. Only the schema and its page can be read without a key."""

from __future__ import annotations

from typing import Any

import orjson
from django.urls import include, path
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from lcmsite.api import views


class CompactOpenApi(OpenApiJsonRenderer):
    """Writes the OpenAPI document without indentation, which would double it."""

    def render(self, data: Any, media_type: str | None = None, renderer_context: Any = None) -> bytes:
        return orjson.dumps(data)


urlpatterns = [
    path("v1/", include(views.urlpatterns)),
    path("v1/schema/", SpectacularAPIView.as_view(renderer_classes=[CompactOpenApi]), name="schema"),
    path("v1/docs/", SpectacularSwaggerView.as_view(url_name="schema"), name="docs"),
    path("<path:rest>", views.nothing_here, name="nothing_here"),
    path("", views.nothing_here),
]
