"""How a request comes to Django, and how its answer leaves the site."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_started
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.log import log_response


class Site(WSGIHandler):
    """Django's application, whose answers leave as lists where they are whole: the server sends a list at once.

    What comes piece by piece keeps two of its threads busy. And what is whole is closed before it goes: its connection
    to the database is back in the pool when the caller can ask again, who is then given the same one.

    Django notes with each request where the site begins and which paths it has. Ours begins at the root, and every
    request finds the same paths: to note it took a tenth of all that is done around what a request asks for.
    """

    def __call__(  # type: ignore[override]  # a list is none of the answers that its stubs know
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        request_started.send(sender=Site, environ=environ)
        response: Any = self.get_response(self.request_class(environ))
        response._handler_class = Site
        cookies = [("Set-Cookie", each.output(header="")) for each in response.cookies.values()]
        start_response(
            f"{response.status_code} {response.reason_phrase}", [*response.headers._store.values(), *cookies]
        )
        if not isinstance(response, HttpResponse):
            wrapper = environ.get("wsgi.file_wrapper")
            if wrapper is None or getattr(response, "file_to_stream", None) is None:
                return response
            # As Django does it: the server closes the file, which ends the request.
            response.file_to_stream.close = response.close
            wrapped: Iterable[bytes] = wrapper(response.file_to_stream, response.block_size)
            return wrapped
        try:
            return [response.content]
        finally:
            response.close()

    def get_response(self, request: HttpRequest) -> Any:
        response: Any = self._middleware_chain(request)  # type: ignore[attr-defined]  # which its stubs leave out
        response._resource_closers.append(request.close)
        if response.status_code >= 400:
            log_response("%s: %s", response.reason_phrase, request.path, response=response, request=request)
        return response


def put_headers(response: HttpResponseBase, *headers: tuple[str, str]) -> None:
    """Have the answer say this, by names and values of our own: Django looks through each for what it must not say.

    Of the eight headers that an answer has, that took a twelfth of all that is done around what a request asks for.
    """
    response.headers._store.update({name.lower(): (name, value) for name, value in headers})
