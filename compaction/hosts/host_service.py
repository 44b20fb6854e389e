"""For hosts that compact their own context: flush before, verify coverage after.

What a host is about to drop is summarized first, and its boundary is recorded under the host's own name for it; the
same name means the same boundary. LCM has no part in the host's compaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compaction.engine import CompactionEngine
from compaction.hosts.host_boundaries import NewBoundary, exact_name
from compaction.models import CompactionBoundary
from compaction.recoverability import coverage
from compaction.types import BoundaryRecord, Coverage, FlushResult, JobRecord, Outcome, Reason
from conversations.errors import Invalid, NotFound
from conversations.scope import EVERYTHING, Scope
from conversations.sql import snapshot

# The most keys that a host can check at once.
MOST_KEYS = 1000


@dataclass(frozen=True)
class HostCompaction:
    """What a host calls before and after it compacts by itself."""

    engine: CompactionEngine

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> HostCompaction:
        return cls(engine=CompactionEngine.from_settings(scope))

    @property
    def scope(self) -> Scope:
        return self.engine.store.scope

    def flush(
        self, *, conversation_id: int, host_reference: str, metadata: Mapping[str, Any] | None = None
    ) -> FlushResult:
        """Before the host compacts: make pending summaries, then record the boundary.

        Everything outside the fresh tail is summarized. The boundary is the newest message at the moment of the call.
        The same reference again gives the same boundary back, and compacts nothing; Conflict if its metadata
        differ now. ConversationBusy, retryable and with nothing recorded, while another compaction is in progress.
        """
        newest = self.scope.conversation(conversation_id).next_seq - 1
        boundary = NewBoundary.checked(conversation_id, host_reference, last_seq=None, metadata=metadata)
        if (recorded := boundary.found()) is not None:
            return FlushResult(boundary=recorded, created=False)
        # No transaction is open here, for a model may be called.
        result = self.engine.compact(conversation_id=conversation_id, reason=Reason.MANUAL)
        # One that a bound of its own has stopped left something; a worker goes on, and the host need not wait.
        job = self._request(conversation_id) if result.outcome is Outcome.STOPPED else None
        recorded, created = boundary.record(newest=newest)
        return FlushResult(boundary=recorded, created=created, compaction=result, job=job)

    def flush_in_background(
        self, *, conversation_id: int, host_reference: str, metadata: Mapping[str, Any] | None = None
    ) -> FlushResult:
        """Record the boundary and queue the pending summaries; otherwise as `flush`."""
        newest = self.scope.conversation(conversation_id).next_seq - 1
        boundary = NewBoundary.checked(conversation_id, host_reference, last_seq=None, metadata=metadata)
        if (recorded := boundary.found()) is not None:
            return FlushResult(boundary=recorded, created=False)
        job = self._request(conversation_id)
        recorded, created = boundary.record(newest=newest)
        return FlushResult(boundary=recorded, created=created, job=job)

    def record_boundary(
        self,
        *,
        conversation_id: int,
        host_reference: str,
        last_seq: int | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> BoundaryRecord:
        """Record where the host has cut its context: after `last_seq`, or the newest.

        The same reference again gives the same boundary back; Conflict if its last_seq or metadata differ
        now. Invalid if it would lie beyond the conversation.
        """
        newest = self.scope.conversation(conversation_id).next_seq - 1
        boundary = NewBoundary.checked(conversation_id, host_reference, last_seq=last_seq, metadata=metadata)
        if (recorded := boundary.found()) is not None:
            return recorded
        if last_seq is not None and not 0 <= last_seq <= newest:
            raise Invalid(f"The conversation ends at message {newest}: there is no boundary behind message {last_seq}.")
        return boundary.record(newest=newest)[0]

    def list_boundaries(
        self, *, conversation_id: int, before_reference: str | None = None, limit: int = 100
    ) -> list[BoundaryRecord]:
        """The conversation's boundaries, the one recorded last first.

        NotFound if there is no such conversation.
        """
        self.scope.conversation(conversation_id)
        boundaries = CompactionBoundary.objects.filter(conversation_id=conversation_id).order_by("-boundary_id")
        if before_reference is not None:
            last = self._boundary(conversation_id, before_reference)
            boundaries = boundaries.filter(pk__lt=boundaries.filter(host_reference=last.host_reference).values("pk"))
        return [boundary.as_record() for boundary in boundaries[:limit]]

    def verify_coverage(
        self, *, conversation_id: int, host_reference: str | None = None, idempotency_keys: Sequence[str] = ()
    ) -> Coverage:
        """After the host has compacted: check that every message can be recovered.

        A message is raw in the active context, or below a summary that is in it; one that is neither, or is not
        stored at all, is a gap. Without a reference, the whole conversation is looked at. `idempotency_keys` are the
        host's own keys of messages that it believes to be archived: those that are not are named. NotFound if no
        boundary has this reference.
        """
        if len(idempotency_keys) > MOST_KEYS:
            raise Invalid(f"At most {MOST_KEYS} idempotency_keys can be checked at once.")
        keys = [exact_name("idempotency_key", key) for key in idempotency_keys]
        # One moment for all of it: an append between two reads would look like a gap.
        with snapshot():
            newest = self.scope.conversation(conversation_id).next_seq - 1
            last_seq = newest if host_reference is None else self._boundary(conversation_id, host_reference).last_seq
            return coverage(conversation_id, last_seq=last_seq, host_reference=host_reference, idempotency_keys=keys)

    def _boundary(self, conversation_id: int, host_reference: str) -> BoundaryRecord:
        found = NewBoundary.checked(conversation_id, host_reference, last_seq=None, metadata=None).found()
        if found is None:
            raise NotFound(f"Conversation {conversation_id} has no boundary {host_reference[:80]!r}.")
        return found

    def _request(self, conversation_id: int) -> JobRecord:
        return self.engine.request(conversation_id=conversation_id, reason=Reason.MANUAL)
