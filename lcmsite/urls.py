"""Every path of the site."""

from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

from lcmsite import health

urlpatterns: list[URLPattern | URLResolver] = [
    path("healthz", health.alive, name="healthz"),
    path("readyz", health.ready, name="readyz"),
    # Whoever opens the address that `lcm up` prints wants to know what there is.
    path("", RedirectView.as_view(url="/api/v1/docs/")),
    path("api/", include("lcmsite.adapters.urls")),
]

handler400 = "lcmsite.adapters.rest.refused"
handler500 = "lcmsite.adapters.rest.failed"
