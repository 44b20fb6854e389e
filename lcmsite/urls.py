"""Every path of the site."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from lcmsite import health
from lcmsite.metrics import exposition

admin.autodiscover()

urlpatterns: list[URLPattern | URLResolver] = [
    path("api/", include("lcmsite.adapters.urls")),
    path("healthz", health.alive, name="healthz"),
    path("readyz", health.ready, name="readyz"),
    path("metrics", exposition.metrics, name="metrics"),
    path("admin/", admin.site.urls),
    path("", include("lcmsite.dashboard.urls")),
]

handler400 = "lcmsite.adapters.rest.refused"
handler500 = "lcmsite.adapters.rest.failed"
