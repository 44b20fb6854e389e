"""How an answer leaves the site."""

from collections.abc import Callable, Iterable
from typing import Any

from django.http import HttpResponse


def in_one_piece(application: Callable[..., Any]) -> Callable[..., Iterable[bytes]]:
    """Django's application, whose answers leave as lists where they are whole: the server sends a list at once.

    What comes piece by piece keeps two of its threads busy. And what is whole is closed before it goes: its connection
    to the database is back in the pool when the caller can ask again, who is then given the same one.
    """

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        response = application(environ, start_response)
        if not isinstance(response, HttpResponse):
            return response
        try:
            return [response.content]
        finally:
            response.close()

    return answer
