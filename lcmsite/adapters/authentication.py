"""The door of the REST API: `Authorization: Bearer lcm_...` on every request. No sessions, so no cookies to forge."""

from __future__ import annotations

from django.http import HttpRequest
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

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
    """How DRF, and with it the schema, knows the holder of an API key: as `request.auth`."""

    def authenticate(self, request: Request) -> tuple[None, Caller]:
        return None, caller_from(request._request)


CHALLENGE = 'Bearer realm="lcm"'
