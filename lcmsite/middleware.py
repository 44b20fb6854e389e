"""Middleware of the site."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import structlog
from django.conf import settings
from django.core.signals import got_request_exception
from django.http import HttpRequest, HttpResponse
from django.utils.module_loading import import_string

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


class Pages:
    """Sessions, people and forms: for the pages alone, as a program's request has no use for them and pays for each.

    The middleware of PAGES_MIDDLEWARE, in that order, around every path that is none of MACHINE_PATHS.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.of_machines = get_response
        self.around: list[Any] = []
        for path in reversed(settings.PAGES_MIDDLEWARE):
            get_response = import_string(path)(get_response)
            self.around.insert(0, get_response)
        self.of_people = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return (self.of_machines if _is_of_machines(request) else self.of_people)(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponse], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        """Django asks only the outer middleware; those within are asked here, the check of forms among them."""
        if _is_of_machines(request):
            return None
        for middleware in self.around:
            if hasattr(middleware, "process_view"):
                answer: HttpResponse | None = middleware.process_view(request, view, args, kwargs)
                if answer is not None:
                    return answer
        return None


def _is_of_machines(request: HttpRequest) -> bool:
    return request.path_info.startswith(settings.MACHINE_PATHS)
