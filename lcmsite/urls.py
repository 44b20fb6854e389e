"""Every path of the site."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from lcmsite.ops import health
from lcmsite.ops.metrics import exposition

admin.autodiscover()

urlpatterns: list[URLPattern | URLResolver] = [
    path("api/", include("lcmsite.api.urls")),
    path("healthz", health.alive, name="healthz"),
    path("readyz", health.ready, name="readyz"),
    path("metrics", exposition.metrics, name="metrics"),
    path("admin/", admin.site.urls),
    path("", include("lcmsite.dashboard.urls")),
]

handler400 = "lcmsite.api.responses.bad_request_response"
handler500 = "lcmsite.api.responses.server_error_response"
