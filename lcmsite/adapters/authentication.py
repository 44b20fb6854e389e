"""The door of the REST API: `Authorization: Bearer lcm_...` on every request. No sessions, so no cookies to forge."""

from __future__ import annotations

from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication

from conversations.errors import Unauthenticated
from lcmsite.adapters.keys import Caller, caller_of


def caller_from(request: HttpRequest) -> Caller:
    """Who holds the key that the request carries; Unauthenticated if nobody does. There are no users here."""
    return bearer(request.META.get("HTTP_AUTHORIZATION", ""))


def bearer(authorization: str) -> Caller:
    """Who holds the key in this header."""
    scheme, _, key = authorization.partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise Unauthenticated("Send your API key as `Authorization: Bearer lcm_...`.")
    return caller_of(key.strip())


class BearerKey(BaseAuthentication):
    """The name by which the schema knows this door. A view asks `caller_from` itself."""


CHALLENGE = 'Bearer realm="lcm"'
