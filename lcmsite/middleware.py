"""Middleware of the site."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import structlog
from csp.middleware import CSPMiddleware, PolicyParts
from django.conf import settings
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.core.signals import got_request_exception
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from lcmsite.api.cancelling import CLIENT
from lcmsite.api.responses import problem_response
from lcmsite.ops.metrics.faces import REQUEST_SECONDS, REQUESTS
from lcmsite.server.disconnected import DISCONNECTED

logger = structlog.get_logger(__name__)


REFUSALS = {400: "This request says wrongly how long it is.", 413: "This is more than LCM_MAX_REQUEST_BYTES allows."}


class RequestLog:
    """One log line for each request, with its path alone: a query string holds what somebody searched for.

    Whatever else is logged on the way carries the request's id, which the answer gives to the caller. It also says how
    long it took, as a browser's tools show it.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self.logger = logger.bind()
        got_request_exception.connect(self.log_failure)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request_id = os.urandom(16).hex()
        bound = structlog.contextvars.bind_contextvars(request_id=request_id)
        client = CLIENT.set(request.META.get(DISCONNECTED))
        began = time.perf_counter()
        try:
            response = self.get_response(request)
            status = response.status_code
            log = self.logger.info if status < 400 else self.logger.warning
            log("request_finished", code=status, request=f"{request.method} {request.path}")
            taken = time.perf_counter() - began
            _count(request, status, taken)
        finally:
            structlog.contextvars.reset_contextvars(**bound)
            CLIENT.reset(client)
        response.headers["X-Request-ID"] = request_id
        response.headers["Server-Timing"] = f"server;dur={1000 * taken:.1f}"
        return response

    @staticmethod
    def log_failure(request: HttpRequest, **_: Any) -> None:
        """An error that nobody foresaw, with where it happened; called while it is being handled."""
        logger.exception("request_failed", request=f"{request.method} {request.path}")


def _count(request: HttpRequest, status: int, seconds: float) -> None:
    """By the operation, as the catalogue calls it, or the page: never by the path, which holds ids."""
    if REQUESTS.target is None:
        return
    # Set by the views of the API.
    operation = getattr(request, "operation", None)
    if operation is None:
        match = request.resolver_match
        operation = match.view_name if match is not None and match.url_name else "none"
    REQUESTS.add(1, operation, str(status))
    REQUEST_SECONDS.add(seconds, operation)


class RequestSize:
    """No body of more than LCM_MAX_REQUEST_BYTES, on any path: of files in forms, Django itself counts no bytes.

    A body that does not say how long it is counts as none: no view reads beyond what was declared.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        declared = request.META.get("CONTENT_LENGTH") or "0"
        is_number = declared.isascii() and declared.isdigit()
        if is_number and int(declared[:19]) <= settings.DATA_UPLOAD_MAX_MEMORY_SIZE:
            return self.get_response(request)
        refusal = problem_response(RequestDataTooBig() if is_number else SuspiciousOperation())
        if not request.path_info.startswith(settings.MACHINE_PATHS):
            # Before anybody knows who asks, there is no page to show it in.
            refusal = HttpResponse(REFUSALS[refusal.status_code], status=refusal.status_code, content_type="text/plain")
        return refusal


class ContentSecurity(CSPMiddleware):
    """What a browser may run of a page: the strict rule, loosened for the admin alone."""

    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        if request.path_info.startswith(settings.ADMIN_PATH) and not report_only:
            parts.update = settings.ADMIN_CONTENT_SECURITY_POLICY
        return parts
