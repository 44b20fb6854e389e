"""Who may send a large body: whoever has a valid key, or a session that is logged in."""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from importlib import import_module

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.db import close_old_connections

from lcmsite.access.keys import caller_of
from lcmsite.catalogue.problems import RequestTooLarge
from lcmsite.server.bodies import Scope


def require_known(scope: Scope) -> None:
    """Refuse a large body of an unknown caller: Unauthenticated with a wrong key, RequestTooLarge without any.

    This only decides whether the body is read. The view authenticates the request again.
    """
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    try:
        scheme, _, key = headers.get(b"authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            caller_of(key.strip())
        elif not _is_logged_in(headers.get(b"cookie", "")):
            raise RequestTooLarge(
                "Without a valid API key or a login, the body of a request is at most "
                f"{settings.DEPLOYMENT.max_anonymous_bytes} bytes."
            )
    finally:
        # No request ends in this thread that would give the database connection back.
        close_old_connections()


def _is_logged_in(cookies: str) -> bool:
    try:
        session = SimpleCookie(cookies).get(settings.SESSION_COOKIE_NAME)
    except CookieError:
        return False
    if session is None:
        return False
    store = import_module(settings.SESSION_ENGINE).SessionStore(session.value)
    return SESSION_KEY in store
