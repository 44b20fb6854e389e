"""Issue, authenticate and revoke API keys.

A program sends its key with every request as `Authorization: Bearer lcm_...`. It acts in the key's workspace, within
the key's scopes. There are no sessions and no cookies that could be forged.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from cachetools import TTLCache
from django.db import InternalError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from conversations.audit import Act, AuditLog
from conversations.errors import Forbidden, Invalid, NotFound, Unauthenticated
from conversations.models import Workspace
from conversations.scope import EVERYTHING, Scope
from lcmsite.models import ApiKey
from lcmsite.types import ApiKeyRecord, IssuedKey, KeyScope

PREFIX = "lcm_"
SHOWN_CHARACTERS = 12
LONGEST_KEY = 200
MOST_LISTED_KEYS = 10
CHALLENGE = 'Bearer realm="lcm"'
USE_IS_RECORDED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True)
class Caller:
    """The authenticated caller: the workspace, and the caller's rights in it.

    `is_operator` is true for the operator at the command line and for superusers. An API key belongs to a workspace, so
    its holder is never a site administrator (`is_operator`).
    """

    scope: Scope
    key_scopes: frozenset[KeyScope]
    api_key_id: int | None = None
    is_operator: bool = False

    def workspace(self) -> Workspace:
        return self.scope.narrow(Workspace.objects.all()).get()

    def require(self, needed: KeyScope) -> None:
        """Raise Forbidden unless the caller has this scope or one that includes it."""
        if not self.may(needed):
            raise Forbidden(f"This needs the scope {needed}; use a key or a role that has it.")

    def require_operator(self) -> None:
        """Raise Forbidden unless the caller is a site administrator."""
        if not self.is_operator:
            raise Forbidden(
                "This belongs to the whole site, not to a workspace: only the site administrator may call it, at the "
                "command line or as a superuser on the pages."
            )

    def may(self, needed: KeyScope) -> bool:
        """Whether the caller has this scope or one that includes it."""
        return any(_RUNG[held] >= _RUNG[needed] for held in self.key_scopes)


# Each scope includes the scopes before it.
_RUNG = {scope: rung for rung, scope in enumerate(KeyScope)}


# How long a revoked key stays valid in the processes that did not revoke it.
SECONDS_CACHED = 1
_callers: TTLCache[bytes, Caller] = TTLCache(maxsize=10_000, ttl=SECONDS_CACHED)
_callers_lock = threading.Lock()


def forget_callers() -> None:
    """Empty this process's cache of authenticated callers."""
    with _callers_lock:
        _callers.clear()


class BearerKey(BaseAuthentication):
    """Authenticates the holder of an API key as a `Caller`, DRF's `request.user`."""

    def authenticate(self, request: Request) -> tuple[Caller, None]:
        return caller_of_header(request.META.get("HTTP_AUTHORIZATION", "")), None


def caller_of_header(authorization: str) -> Caller:
    """Return the holder of this header's key; Unauthenticated if it is not valid."""
    scheme, _, key = authorization.partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise Unauthenticated("Send your API key as `Authorization: Bearer lcm_...`.")
    return caller_of(key.strip())


def caller_of(key: str) -> Caller:
    """Return the holder of a key; Unauthenticated if unknown, revoked or expired.

    A cached result is valid for one second, so every process refuses a revoked key within a second. The use of a key is
    recorded once a minute.
    """
    if not (key.startswith(PREFIX) and len(key) <= LONGEST_KEY and key.isascii()):
        raise Unauthenticated("This is not a valid API key.")
    return caller_of_hash(hash_of_key(key))


def caller_of_hash(key_hash: bytes) -> Caller:
    """Return the holder of the key with this hash; raises as `caller_of` does."""
    with _callers_lock:
        cached = _callers.get(key_hash)
    if cached is not None:
        return cached
    row = ApiKey.objects.filter(key_hash=key_hash).first()
    now = timezone.now()
    if row is None:
        raise Unauthenticated("This is not a valid API key.")
    if row.revoked_at is not None:
        raise Unauthenticated("This API key was revoked; use another key.", code="key_revoked")
    if row.expires_at is not None and row.expires_at <= now:
        raise Unauthenticated("This API key has expired; use another key.", code="key_expired")
    _record_use(row, now)
    caller = Caller(
        scope=Scope(row.workspace_id, actor=f"key {row.pk}"),
        key_scopes=frozenset(KeyScope(scope) for scope in row.scopes),
        api_key_id=row.pk,
    )
    if row.expires_at is None or row.expires_at > now + timedelta(seconds=SECONDS_CACHED):
        with _callers_lock:
            _callers[key_hash] = caller
    return caller


def _record_use(row: ApiKey, now: datetime) -> None:
    """Record that the key is in use, unless it was recorded within the last minute."""
    before = now - USE_IS_RECORDED_EVERY
    if row.last_used_at is None or row.last_used_at < before:
        # The database may be read-only, for example on a full disk; callers can still read then.
        with suppress(InternalError):
            unrecorded = Q(last_used_at=None) | Q(last_used_at__lt=before)
            ApiKey.objects.filter(unrecorded, pk=row.pk).update(last_used_at=now)


def issue(
    *,
    workspace_id: int,
    name: str,
    scopes: Iterable[str] = (KeyScope.READ,),
    expires_at: datetime | None = None,
    by: Scope = EVERYTHING,
) -> IssuedKey:
    """Issue a key. Its text is not stored, so it can be shown only once.

    `by` is the issuer, for the audit log. Raises Invalid for unusable scopes, names and expiry times.
    """
    try:
        held = sorted({KeyScope(scope) for scope in scopes}, key=list(KeyScope).index)
    except ValueError:
        raise Invalid(f"The scopes of a key are among {', '.join(KeyScope)}.") from None
    if not held:
        raise Invalid(f"A key needs at least one scope, of {', '.join(KeyScope)}.")
    if not (1 <= len(name) <= 200 and name.isprintable()):
        raise Invalid("A key's name is 1 to 200 printable characters.")
    if expires_at is not None and expires_at <= timezone.now():
        raise Invalid("The key's expiry is in the past; give a later time.")
    key = PREFIX + secrets.token_urlsafe(32)
    with transaction.atomic():
        row = ApiKey.objects.create(
            workspace_id=workspace_id,
            name=name,
            prefix=key[:SHOWN_CHARACTERS],
            key_hash=hash_of_key(key),
            scopes=held,
            expires_at=expires_at,
        )
        AuditLog(by).record(
            Act.ISSUE_KEY, workspace_id=workspace_id, target=f"key {row.pk}", detail={"scopes": list(held)}
        )
    row.refresh_from_db()
    return IssuedKey(key=key, record=row.as_record())


def list_keys(scope: Scope) -> list[ApiKeyRecord]:
    """All keys of the workspace, revoked ones included."""
    return [row.as_record() for row in _keys_of(scope)]


def _keys_of(scope: Scope) -> QuerySet[ApiKey]:
    rows = ApiKey.objects.select_related("workspace").order_by("api_key_id")
    return rows if scope.workspace_id is None else rows.filter(workspace_id=scope.workspace_id)


def revoke(scope: Scope, *, key: str) -> ApiKeyRecord:
    """Permanently revoke the key with this id or prefix.

    Every process refuses it within a second. Raises NotFound if no key matches, and Invalid, listing them, if several
    have this prefix.
    """
    found = list(_keys_of(scope).filter(_with_id_or_prefix(key))[: MOST_LISTED_KEYS + 1])
    if not found:
        raise NotFound(f"There is no key {key[:SHOWN_CHARACTERS]!r} that you may see.")
    if len(found) > 1:
        named = ", ".join(f"{row.api_key_id} ({row.prefix}…, {row.name!r})" for row in found[:MOST_LISTED_KEYS])
        more = ", and more" if len(found) > MOST_LISTED_KEYS else ""
        raise Invalid(f"Several keys have this prefix: {named}{more}. Give the id of one.", code="ambiguous_key")
    row = found[0]
    if row.revoked_at is None:
        with transaction.atomic():
            row.revoked_at = timezone.now()
            row.save(update_fields=["revoked_at"])
            AuditLog(scope).record(Act.REVOKE_KEY, workspace_id=row.workspace_id, target=f"key {row.pk}")
        forget_callers()
    return row.as_record()


def _with_id_or_prefix(key: str) -> Q:
    """The filter for keys with this id, this prefix, or this full text."""
    if key.isascii() and key.isdigit():
        return Q(api_key_id=int(key[:19]))
    if not (key.isascii() and key.isprintable() and key.startswith(PREFIX) and key != PREFIX):
        return Q(pk__in=[])
    return Q(prefix__startswith=key[:SHOWN_CHARACTERS])


def hash_of_key(key: str) -> bytes:
    """The hash under which a key is stored."""
    # A fast hash suffices: slow ones make guessing expensive, and 256 random bits cannot be guessed at all. Without a
    # salt, a key is found by its hash in one query.
    return hashlib.sha256(key.encode("ascii")).digest()
