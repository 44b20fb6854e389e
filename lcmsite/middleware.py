"""Middleware of the site."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import structlog
from django.core.signals import got_request_exception
from django.http import HttpRequest, HttpResponse

logger = structlog.get_logger(__name__)


class RequestLog:
    """One log line for each request, with its path alone: a query string holds what somebody searched for.

    Whatever else is logged on the way carries the request's id, which the answer gives to the caller.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        got_request_exception.connect(self.log_failure)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        request_id = secrets.token_hex(16)
        structlog.contextvars.bind_contextvars(request_id=request_id)
        try:
            response = self.get_response(request)
            status = response.status_code
            log = logger.info if status < 400 else logger.warning
            log("request_finished", code=status, request=f"{request.method} {request.path}")
        finally:
            structlog.contextvars.clear_contextvars()
        response["X-Request-ID"] = request_id
        return response

    @staticmethod
    def log_failure(request: HttpRequest, **_: Any) -> None:
        """An error that nobody foresaw, with where it happened; called while it is being handled."""
        logger.exception("request_failed", request=f"{request.method} {request.path}")
