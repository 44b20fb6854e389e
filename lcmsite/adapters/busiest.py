"""What agents ask with every turn takes the shortest way to its view and back."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import cast

from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.common import CommonMiddleware
from django.middleware.security import SecurityMiddleware
from django.urls import ResolverMatch

from lcmsite.adapters import rest
from lcmsite.middleware import RequestLog, RequestSize

# An agent asks about one conversation again and again.
PATHS_KNOWN = 256


class Busiest:
    """First of all middleware: of the rest it asks, in the same order, what has something to do with these paths.

    Each layer that Django puts around a view costs something, also where it does nothing, and it looks a path up anew
    with every request: 70 us of each.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self.security = SecurityMiddleware(get_response)
        self.common = CommonMiddleware(get_response)
        self.frames = XFrameOptionsMiddleware(get_response)
        # A host that is not ours is refused by an exception.
        answered = cast("Callable[[HttpRequest], HttpResponse]", convert_exception_to_response(self.answer))
        self.logged = RequestLog(RequestSize(answered))

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        match = _found(request.path_info) if request.path_info.startswith(rest.API) else None
        if match is None:
            return self.get_response(request)
        request.resolver_match = match
        response = self.security.process_request(request) or self.logged(request)
        return self.security.process_response(request, response)

    def answer(self, request: HttpRequest) -> HttpResponseBase:
        """What the view says, which answers every error by itself."""
        response: HttpResponseBase | None = self.common.process_request(request)
        if response is None:
            view, _, in_path = cast(ResolverMatch, request.resolver_match)
            response = self.frames.process_response(request, view(request, **in_path))
        return self.common.process_response(request, response)


@lru_cache(PATHS_KNOWN)
def _found(path: str) -> ResolverMatch | None:
    for each in rest.busiest:
        match = each.resolve(path.removeprefix("/"))
        if match is not None:
            return match
    return None
