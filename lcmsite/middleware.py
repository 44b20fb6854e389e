"""Middleware: request ids and log, metrics, content security."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import structlog
from csp.middleware import CSPMiddleware, PolicyParts
from django.conf import settings
from django.core.signals import got_request_exception
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django_prometheus.middleware import PrometheusAfterMiddleware

from lcmsite.api.concurrency import CLIENT, DISCONNECTED

logger = structlog.get_logger(__name__)


class RequestLog:
    """Log each request by path, without the query, and give it an id.

    Every log line of the request contains the id. The response returns the id in X-Request-ID, and the duration in
    Server-Timing.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        got_request_exception.connect(self.log_failure)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request_id = os.urandom(16).hex()
        bound = structlog.contextvars.bind_contextvars(request_id=request_id)
        client = CLIENT.set(request.META.get(DISCONNECTED))
        began = time.perf_counter()
        try:
            response = self.get_response(request)
            status = response.status_code
            log = logger.info if status < 400 else logger.warning
            log("request_finished", code=status, request=f"{request.method} {request.path}")
        finally:
            structlog.contextvars.reset_contextvars(**bound)
            CLIENT.reset(client)
        response.headers["X-Request-ID"] = request_id
        response.headers["Server-Timing"] = f"server;dur={1000 * (time.perf_counter() - began):.1f}"
        return response

    @staticmethod
    def log_failure(request: HttpRequest, **_: Any) -> None:
        """Log an unexpected error with its traceback."""
        logger.exception("request_failed", request=f"{request.method} {request.path}")


class RequestMetrics(PrometheusAfterMiddleware):
    """django-prometheus' metrics, with the operation as the view's name."""

    def label_metric(
        self, metric: Any, request: HttpRequest, response: HttpResponseBase | None = None, **labels: str
    ) -> Any:
        if "view" in labels:
            labels["view"] = getattr(request, "operation", labels["view"])
        return super().label_metric(metric, request, response, **labels)


class ContentSecurity(CSPMiddleware):
    """The content security policy: strict, but less strict for the admin."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        # django-csp has a setting for this, but renders the policy before it checks the setting.
        if request.path_info.startswith(settings.MACHINE_PATHS):
            return response
        return super().process_response(request, response)

    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        if request.path_info.startswith(settings.ADMIN_PATH) and not report_only:
            parts.update = settings.ADMIN_CONTENT_SECURITY_POLICY
        return parts
