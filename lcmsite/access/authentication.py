"""The door of the REST API: `Authorization: Bearer lcm_...` on every request. No sessions, so no cookies to forge."""

from __future__ import annotations

from collections.abc import Mapping

from rest_framework.authentication import BaseAuthentication

from conversations.errors import Unauthenticated
from lcmsite.access.keys import Caller, caller_of
from lcmsite.api.throttling import spend_one


def admit(authorization: str) -> tuple[Caller, Mapping[str, str]]:
    """Who holds the key in this header, and what each answer to them says of how much more they may ask.

    Raises Unauthenticated if nobody does, TooManyRequests for a key that has asked too much: before anybody looks it
    up, so that it costs no query. There are no users here.
    """
    scheme, _, key = authorization.partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise Unauthenticated("Send your API key as `Authorization: Bearer lcm_...`.")
    allowance = spend_one(key.strip())
    return caller_of(key.strip()), allowance.headers if allowance is not None else {}


class BearerKey(BaseAuthentication):
    """The name by which the schema knows this door. A view asks `admit` itself."""


CHALLENGE = 'Bearer realm="lcm"'
