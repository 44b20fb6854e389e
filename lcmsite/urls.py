"""Every path of the site."""

from django.urls import URLPattern, URLResolver, include, path

from lcmsite import health

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.alive, name="healthz"),
    path("readyz", health.ready, name="readyz"),
    path("api/", include("lcmsite.adapters.urls")),
    path("", include("lcmsite.dashboard.urls")),
]

handler400 = "lcmsite.adapters.rest.refused"
handler500 = "lcmsite.adapters.rest.failed"
