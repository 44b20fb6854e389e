"""What agents ask with every turn takes the shortest way to its view and back."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.common import CommonMiddleware
from django.middleware.security import SecurityMiddleware
from django.urls import ResolverMatch

from lcmsite.answering import put_headers
from lcmsite.api import views
from lcmsite.middleware import RequestLog, RequestSize

# An agent asks about one conversation again and again.
PATHS_KNOWN = 256
# By which a site is reached.
HOSTS_KNOWN = 256


class Busiest:
    """First of all middleware: of the rest it asks, in the same order, what has something to do with these paths.

    Each layer that Django puts around a view costs something, also where it does nothing, and it looks a path up anew
    with every request, and reads what host it is for: 90 us of each. What a layer says in every answer is asked of it
    once.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self.security = SecurityMiddleware(get_response)
        self.common = CommonMiddleware(get_response)
        self.framing = _said_by(XFrameOptionsMiddleware(get_response))
        self.securing = _said_by(self.security)
        self.hosts: set[str | None] = set()
        # A host that is not ours is refused by an exception.
        answered = cast("Callable[[HttpRequest], HttpResponse]", convert_exception_to_response(self.answer))
        self.logged = RequestLog(RequestSize(answered))

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        match = _found(request.path_info) if request.path_info.startswith(views.API) else None
        if match is None:
            return self.get_response(request)
        request.resolver_match = match
        response = self.security.process_request(request) or self.logged(request)
        if self.security.sts_seconds:
            # What it says of TLS hangs on the request.
            return self.security.process_response(request, response)
        put_headers(response, *self.securing)
        return response

    def answer(self, request: HttpRequest) -> HttpResponseBase:
        """What the view says, which answers every error by itself, and always whole."""
        self.require_known_host(request)
        match: Any = request.resolver_match
        response: HttpResponse = match.func(request, **match.kwargs)
        put_headers(response, *self.framing, ("Content-Length", str(len(response.content))))
        return response

    def require_known_host(self, request: HttpRequest) -> None:
        """DisallowedHost for one that is not ours. Of a path with its slash, Django's layer asks no more."""
        host = request.META.get("HTTP_HOST")
        if host not in self.hosts:
            self.common.process_request(request)
            if host and len(self.hosts) < HOSTS_KNOWN:
                self.hosts.add(host)


def _said_by(layer: XFrameOptionsMiddleware | SecurityMiddleware) -> tuple[tuple[str, str], ...]:
    """The headers that this layer puts into every answer."""
    response = HttpResponse()
    before = set(response.headers)
    layer.process_response(HttpRequest(), response)
    return tuple((name, value) for name, value in response.items() if name not in before)


@lru_cache(PATHS_KNOWN)
def _found(path: str) -> ResolverMatch | None:
    for each in views.busiest:
        match = each.resolve(path.removeprefix("/"))
        if match is not None:
            return match
    return None
