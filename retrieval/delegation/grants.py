"""Issue read grants, count the tokens that are read under them, and revoke them.

Each read first reserves tokens, while the grant's row is locked. So concurrent readers together never get more tokens
than the cap. Reserved tokens count as used until the reader gives back the unused ones. If the reader's process dies,
they stay used.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from pydantic import TypeAdapter

from conversations.content.lossless_values import storable
from conversations.errors import Forbidden, LcmError, NotFound
from conversations.scope import Scoped
from conversations.sql import execute, load
from conversations.store.pages import newest_first
from retrieval.delegation.types import LEAST_ROOM, GrantExceeded, GrantExpired, GrantRecord, GrantRevoked, GrantState
from retrieval.models import Grant

# How long expired grants are kept, with their counts of reads and refusals.
KEPT = timedelta(days=30)
_MOST_REMOVED = 100

_SQL = load("retrieval/delegation.sql")
_RECORD = TypeAdapter(GrantRecord)
_REFUSALS: dict[GrantState, tuple[type[Forbidden], str]] = {
    GrantState.REVOKED: (GrantRevoked, "The grant {grant.grant_id} was revoked."),
    GrantState.EXPIRED: (GrantExpired, "The grant {grant.grant_id} has expired; ask without it for a new one."),
    GrantState.EXCEEDED: (
        GrantExceeded,
        "All of the {grant.token_cap:,} tokens that the grant {grant.grant_id} allows were read; ask without it for a "
        "new one.",
    ),
}


@dataclass
class Reservation:
    """Reserved tokens; the reader sets `used` to the number of tokens it has read."""

    tokens: int
    used: int = 0


@dataclass(frozen=True)
class Grants(Scoped):
    """The grants of one workspace or, for the site administrator, of all."""

    def list_grants(self, *, before_grant: str | None = None, limit: int = 20) -> list[GrantRecord]:
        """List grants (permissions to read texts for one question), newest first."""
        grants = newest_first(self.scope.narrow(Grant.objects.all()), before_grant, self._found)
        return [_record(grant) for grant in grants[:limit]]

    def get_grant(self, *, grant_id: str) -> GrantRecord:
        """Get a grant: what it allows, what was read with it, what was refused."""
        return _record(self._found(grant_id))

    def revoke_grant(self, *, grant_id: str) -> GrantRecord:
        """Revoke a grant: work in progress can read nothing more with it."""
        found = self._found(grant_id)
        Grant.objects.filter(pk=found.pk, revoked_at=None).update(revoked_at=timezone.now())
        return self.get_grant(grant_id=grant_id)

    def issue(
        self, *, workspace_id: int, question: str, item_ids: Sequence[str], depth: int, token_cap: int, seconds: int
    ) -> GrantRecord:
        """Create a grant for these items; the caller has checked access to them."""
        now = timezone.now()
        forgotten = Grant.objects.filter(workspace_id=workspace_id, expires_at__lt=now - KEPT)
        Grant.objects.filter(pk__in=list(forgotten.values_list("pk", flat=True)[:_MOST_REMOVED])).delete()
        grant = Grant.objects.create(
            grant_id=f"grant_{secrets.token_hex(8)}",
            workspace_id=workspace_id,
            question=storable(question),
            item_ids=list(item_ids),
            depth=depth,
            token_cap=token_cap,
            created_at=now,
            expires_at=now + timedelta(seconds=seconds),
        )
        return _record(grant)

    def usable(self, *, grant_id: str) -> GrantRecord:
        """Return the grant if it is active; otherwise count and raise the refusal."""
        try:
            grant = self._found(grant_id)
        except NotFound as refusal:
            # The refusal is counted on the grant, so its workspace sees that another workspace tried to use it.
            raise self.count_refusal(grant_id=grant_id, refusal=refusal) from None
        record = _record(grant)
        self._require(record)
        return record

    @contextmanager
    def reserve(self, *, grant_id: str, wanted: int) -> Iterator[Reservation]:
        """Reserve at most `wanted` tokens for a read; at its end, give back unused ones.

        If the grant is not active, the refusal is counted and raised.
        """
        with transaction.atomic():
            grant = Grant.objects.select_for_update().get(pk=grant_id)
            record = _record(grant)
            tokens = min(wanted, record.tokens_left)
            if record.state is GrantState.ACTIVE:
                Grant.objects.filter(pk=grant_id).update(tokens_used=F("tokens_used") + tokens, reads=F("reads") + 1)
        self._require(record)
        room = Reservation(tokens)
        try:
            yield room
        finally:
            if room.used < tokens:
                Grant.objects.filter(pk=grant_id).update(tokens_used=F("tokens_used") - (tokens - max(0, room.used)))

    def count_refusal(self, *, grant_id: str, refusal: LcmError) -> LcmError:
        """Count a refusal on the grant, by error code, and return the refusal."""
        execute(_SQL["count_refusal"], {"code": refusal.code, "grant_id": storable(grant_id)})
        return refusal

    def _require(self, grant: GrantRecord) -> None:
        if grant.state in _REFUSALS:
            error, text = _REFUSALS[grant.state]
            raise self.count_refusal(grant_id=grant.grant_id, refusal=error(text.format(grant=grant)))

    def _found(self, grant_id: str) -> Grant:
        return self.scope.find(Grant.objects.all(), "grant", grant_id, grant_id=grant_id)


def _record(grant: Grant) -> GrantRecord:
    if grant.revoked_at is not None:
        state = GrantState.REVOKED
    elif grant.expires_at <= timezone.now():
        state = GrantState.EXPIRED
    elif grant.token_cap - grant.tokens_used < LEAST_ROOM:
        state = GrantState.EXCEEDED
    else:
        state = GrantState.ACTIVE
    return _RECORD.validate_python({**vars(grant), "state": state})
