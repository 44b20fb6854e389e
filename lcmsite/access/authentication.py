"""Authentication of programs: `Authorization: Bearer lcm_...` with every request; no sessions, no cookies to forge."""

from __future__ import annotations

from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from conversations.errors import Unauthenticated
from lcmsite.access.keys import Caller, caller_of

CHALLENGE = 'Bearer realm="lcm"'


class BearerKey(BaseAuthentication):
    """Authenticates the holder of an API key as a `Caller`, DRF's `request.user`."""

    def authenticate(self, request: Request) -> tuple[Caller, None]:
        return caller_by(request.META.get("HTTP_AUTHORIZATION", "")), None

    def authenticate_header(self, request: Request) -> str:
        return CHALLENGE


def caller_by(authorization: str) -> Caller:
    """The holder of the key in this header; Unauthenticated if it holds no valid one."""
    scheme, _, key = authorization.partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise Unauthenticated("Send your API key as `Authorization: Bearer lcm_...`.")
    return caller_of(key.strip())
