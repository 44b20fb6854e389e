"""Render the gateway's own errors in the error format of each vendor API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lcmsite.catalogue.problems import Problem
from lcmsite.gateway.surfaces import Surface

_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}
_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def refusal(problem: Problem, surface: Surface | None) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Return status, headers and body of an error response."""
    body: Mapping[str, Any]
    status = problem.status
    if surface is Surface.MESSAGES:
        kind = _ANTHROPIC_TYPES.get(status, "api_error")
        body = {"type": "error", "error": {"type": kind, "message": f"LCM gateway: {problem.detail}"}}
    elif surface is not None:
        kind = _OPENAI_TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
        body = {
            "error": {"message": f"LCM gateway: {problem.detail}", "type": kind, "param": None, "code": problem.code}
        }
    else:
        body = problem.as_json()
    data = json.dumps(body).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(data)).encode())]
    headers += [
        (name.lower().encode(), value.encode()) for name, value in problem.headers.items() if name != "WWW-Authenticate"
    ]
    return status, [*headers, (b"x-lcm-status", f"refused; reason={problem.code}".encode())], data
