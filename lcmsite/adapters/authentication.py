"""The door of the REST API: `Authorization: Bearer lcm_...` on every request. No sessions, so no cookies to forge."""

from __future__ import annotations

from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from conversations.errors import Unauthenticated
from lcmsite.adapters.keys import Caller, caller_of


class BearerKey(BaseAuthentication):
    """Makes the holder of an API key `request.auth`, as a Caller; refuses everybody else. There are no users here."""

    def authenticate(self, request: Request) -> tuple[None, Caller]:
        scheme, _, key = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise Unauthenticated("Send your API key as `Authorization: Bearer lcm_...`.")
        return None, caller_of(key.strip())


CHALLENGE = 'Bearer realm="lcm"'
