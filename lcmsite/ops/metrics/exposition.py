"""Serve `/metrics` to holders of the token; if none is set, only to this machine."""

from __future__ import annotations

import hmac
from contextlib import suppress
from functools import cache

from django.conf import settings
from django.db import Error
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from django_prometheus.migrations import ExportMigrations
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.multiprocess import MultiProcessCollector

from conversations.errors import Forbidden, LcmError, Unauthenticated
from lcmsite.api.responses import problem_response
from lcmsite.ops.metrics import counters  # noqa: F401 (declared in every process)
from lcmsite.ops.metrics.directory import shared_directory
from lcmsite.ops.metrics.state import State

LOOPBACK = ("127.0.0.1", "::1", "::ffff:127.0.0.1")
# A request with one of these came through a proxy on this machine, and its client may be anywhere.
OF_PROXIES = ("HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_X_REAL_IP", "HTTP_VIA")


@csrf_exempt
@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """All metrics in the text format of Prometheus."""
    try:
        require_metrics_access(request)
    except LcmError as refusal:
        return problem_response(refusal)
    with suppress(Error):
        _export_migrations()
    state = CollectorRegistry()
    state.register(State())
    return HttpResponse(generate_latest(_counted()) + generate_latest(state), content_type=CONTENT_TYPE_LATEST)


_export_migrations = cache(ExportMigrations)
"""Called once per process, because it reads every migration."""


def _counted() -> CollectorRegistry:
    """The counters of all processes that share a directory, else of this process."""
    if shared_directory() is None:
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry)
    return registry


def require_metrics_access(request: HttpRequest) -> None:
    """Raise Unauthenticated without the token, or Forbidden if not from this machine.

    If a token is configured, every request needs it; otherwise only this machine may read.
    """
    token = settings.DEPLOYMENT.metrics_token
    if token:
        scheme, _, given = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), token.encode()):
            raise Unauthenticated("Send LCM_METRICS_TOKEN as `Authorization: Bearer ...`.")
    elif request.META.get("REMOTE_ADDR") not in LOOPBACK or any(name in request.META for name in OF_PROXIES):
        raise Forbidden("Only clients on this machine may read metrics; set LCM_METRICS_TOKEN to allow others.")
