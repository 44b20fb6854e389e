"""Turn every error of the API into a response with a problem in JSON."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import DisallowedHost
from django.core.signals import got_request_exception
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.views import defaults
from rest_framework.request import Request

from lcmsite.catalogue.json_text import as_bytes
from lcmsite.catalogue.problems import INTERNAL, problem_of

API = "/api/"
JSON = "application/json"


def problem_response(error: BaseException, request: HttpRequest | Request | None = None) -> HttpResponse:
    """The response to an error: its problem in JSON, with status and headers."""
    problem = problem_of(error)
    if problem is INTERNAL and request is not None:
        # Django sends this signal for unhandled errors; its receivers write the log.
        got_request_exception.send(sender=problem_response, request=request)
    content = as_bytes(problem.as_json())
    return HttpResponse(content, status=problem.status, content_type=JSON, headers=problem.headers)


def exception_handler(error: Exception, context: Mapping[str, Any]) -> HttpResponse:
    """DRF's EXCEPTION_HANDLER: respond to an error of a view."""
    return problem_response(error, context["request"])


def bad_request_response(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler400: requests that reach no view, such as for an unknown host."""
    if request.path.startswith(API):
        return problem_response(exception)
    if isinstance(exception, DisallowedHost):
        # Plain text for a browser: people see this if a new host name is not configured yet.
        return HttpResponseBadRequest(problem_of(exception).detail, content_type="text/plain")
    return defaults.bad_request(request, exception)


def server_error_response(request: HttpRequest) -> HttpResponse:
    """Django's handler500: errors outside of any view."""
    if request.path.startswith(API):
        return problem_response(sys.exc_info()[1] or RuntimeError())
    return defaults.server_error(request)
