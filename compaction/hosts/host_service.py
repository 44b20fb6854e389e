"""For hosts that compact their own context: flush before, verify coverage after.

What a host is about to drop is summarized first, and its boundary is recorded under the host's own name for it; the
same name means the same boundary. LCM has no part in the host's compaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compaction.engine import CompactionEngine
from compaction.hosts.host_boundaries import NewBoundary, storable_metadata
from compaction.models import CompactionBoundary
from compaction.types import BoundaryRecord, Coverage, CoverageGap, FlushResult, GapKind, Outcome, Reason
from conversations import sql
from conversations.errors import Invalid, NotFound
from conversations.scope import EVERYTHING, Scope
from conversations.sql import snapshot

# A report lists so many gaps; all of them are counted.
MOST_GAPS = 100

_STATEMENTS = sql.load("compaction/recoverability.sql")


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
        return self._flush(conversation_id, host_reference, metadata, in_background=False)

    def flush_in_background(
        self, *, conversation_id: int, host_reference: str, metadata: Mapping[str, Any] | None = None
    ) -> FlushResult:
        """Record the boundary and queue the pending summaries; otherwise as `flush`."""
        return self._flush(conversation_id, host_reference, metadata, in_background=True)

    def _flush(
        self, conversation_id: int, host_reference: str, metadata: Mapping[str, Any] | None, *, in_background: bool
    ) -> FlushResult:
        newest = self.scope.conversation(conversation_id).next_seq - 1
        boundary = NewBoundary(conversation_id, host_reference, metadata=storable_metadata(metadata))
        if (recorded := boundary.found()) is not None:
            return FlushResult(boundary=recorded, created=False)
        # No transaction is open here, for a model may be called.
        result = None if in_background else self.engine.compact(conversation_id=conversation_id, reason=Reason.MANUAL)
        # One that a bound of its own has stopped left something; a worker goes on, and the host need not wait.
        is_left = result is None or result.outcome is Outcome.STOPPED
        job = self.engine.request(conversation_id=conversation_id, reason=Reason.MANUAL) if is_left else None
        recorded, created = boundary.record(newest=newest)
        return FlushResult(boundary=recorded, created=created, compaction=result, job=job)

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
        boundary = NewBoundary(conversation_id, host_reference, last_seq, storable_metadata(metadata))
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
        # One moment for all of it: an append between two reads would look like a gap.
        with snapshot():
            newest = self.scope.conversation(conversation_id).next_seq - 1
            last_seq = newest if host_reference is None else self._boundary(conversation_id, host_reference).last_seq
            return _coverage(conversation_id, last_seq, host_reference, list(idempotency_keys))

    def _boundary(self, conversation_id: int, host_reference: str) -> BoundaryRecord:
        found = NewBoundary(conversation_id, host_reference).found()
        if found is None:
            raise NotFound(f"Conversation {conversation_id} has no boundary {host_reference[:80]!r}.")
        return found


def _coverage(conversation_id: int, last_seq: int, host_reference: str | None, idempotency_keys: list[str]) -> Coverage:
    """Count what can be recovered: two statements, whatever the size."""
    found = sql.rows(
        _STATEMENTS["coverage"], {"conversation_id": conversation_id, "last_seq": last_seq, "most": MOST_GAPS}
    )
    stored, summarized, raw, unreachable, gaps = found[0][:5]
    listed = tuple(CoverageGap(row[5], row[6], GapKind(row[7])) for row in found if row[5] is not None)
    missing_keys = tuple(key for (key,) in sql.rows(_STATEMENTS["missing_keys"], [idempotency_keys, conversation_id]))
    return Coverage(
        conversation_id=conversation_id,
        host_reference=host_reference,
        last_seq=last_seq,
        stored=stored,
        summarized=summarized,
        raw=raw,
        missing=last_seq - stored,
        unreachable=unreachable,
        is_complete=stored == last_seq and not unreachable and not missing_keys,
        gaps=listed,
        gaps_left_out=gaps - len(listed),
        missing_keys=missing_keys,
    )
