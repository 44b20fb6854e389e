"""For hosts that compact their own context: flush before, verify coverage after.

What a host is about to drop is summarized first, and its boundary is recorded under the host's own name for it; the
same name means the same boundary. LCM has no part in the host's compaction.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compaction.engine import CompactionEngine
from compaction.models import CompactionBoundary
from compaction.types import BoundaryRecord, Coverage, CoverageGap, FlushResult, GapKind, Outcome, Reason
from conversations import sql
from conversations.content.flattening import require_metadata
from conversations.content.lossless_values import MOST_LEVELS, is_plain
from conversations.errors import Conflict, Invalid, NotFound
from conversations.policy import StorePolicy
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
        newest = self.scope.conversation(conversation_id).head_seq
        plain = _storable(metadata)
        if (recorded := _recorded(conversation_id, host_reference, metadata=plain)) is not None:
            return FlushResult(boundary=recorded, created=False)
        # No transaction is open here, for a model may be called.
        result = None if in_background else self.engine.compact(conversation_id=conversation_id, reason=Reason.MANUAL)
        # One that a bound of its own has stopped left something; a worker goes on, and the host need not wait.
        is_left = result is None or result.outcome is Outcome.STOPPED
        job = self.engine.request(conversation_id=conversation_id, reason=Reason.MANUAL) if is_left else None
        boundary, created = _record(conversation_id, host_reference, newest=newest, metadata=plain)
        return FlushResult(boundary=boundary, created=created, compaction=result, job=job)

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
        conversation = self.scope.conversation(conversation_id)
        newest = conversation.next_seq - 1
        plain = _storable(metadata)
        recorded = _recorded(conversation_id, host_reference, last_seq=last_seq, metadata=plain)
        if recorded is not None:
            return recorded
        if last_seq is not None and not 0 <= last_seq <= newest:
            raise Invalid(f"The conversation ends at message {newest}: there is no boundary behind message {last_seq}.")
        head = conversation.head_seq
        return _record(conversation_id, host_reference, newest=head, last_seq=last_seq, metadata=plain)[0]

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

        A message is raw in the active context, or below a summary that is in it, or off the active path since the head
        was moved; one that is none of these, or is not stored at all, is a gap. Without a reference, the whole
        conversation is looked at. `idempotency_keys` are the host's own keys of messages that it believes to be
        archived: those that are not are named. NotFound if no boundary has this reference.
        """
        # One moment for all of it: an append between two reads would look like a gap.
        with snapshot():
            conversation = self.scope.conversation(conversation_id)
            newest = conversation.next_seq - 1
            last_seq = newest if host_reference is None else self._boundary(conversation_id, host_reference).last_seq
            values = {
                "conversation_id": conversation_id,
                "last_seq": last_seq,
                "most": MOST_GAPS,
                "off": conversation.off_path,
            }
            found = sql.rows(_STATEMENTS["coverage"], values)
            missing = sql.rows(_STATEMENTS["missing_keys"], [list(idempotency_keys), conversation_id])
        stored, summarized, raw, unreachable, inactive, gaps = found[0][:6]
        listed = tuple(CoverageGap(row[6], row[7], GapKind(row[8])) for row in found if row[6] is not None)
        return Coverage(
            conversation_id=conversation_id,
            host_reference=host_reference,
            last_seq=last_seq,
            stored=stored,
            summarized=summarized,
            raw=raw,
            missing=last_seq - stored,
            unreachable=unreachable,
            inactive=inactive,
            is_complete=stored == last_seq and not unreachable and not missing,
            gaps=listed,
            gaps_left_out=gaps - len(listed),
            missing_keys=tuple(key for (key,) in missing),
        )

    def _boundary(self, conversation_id: int, host_reference: str) -> BoundaryRecord:
        found = _recorded(conversation_id, host_reference)
        if found is None:
            raise NotFound(f"Conversation {conversation_id} has no boundary {host_reference[:80]!r}.")
        return found


def _recorded(
    conversation_id: int, host_reference: str, *, last_seq: int | None = None, metadata: dict[str, Any] | None = None
) -> BoundaryRecord | None:
    """The boundary of this name, if any; Conflict if one of the given values differs."""
    boundaries = CompactionBoundary.objects.filter(conversation_id=conversation_id, host_reference=host_reference)
    found = boundaries.first()
    if found is None:
        return None
    if last_seq is not None and last_seq != found.last_seq:
        differs = "last_seq"
    # Compared by the database: jsonb writes 1e23 another way, and to Python the two would not be equal.
    elif metadata is not None and not boundaries.filter(metadata=metadata).exists():
        differs = "metadata"
    else:
        return found.as_record()
    raise Conflict(
        f"The boundary {host_reference[:80]!r} was recorded before with another {differs}; nothing was "
        "changed. Use a new reference for a new compaction."
    )


def _record(
    conversation_id: int,
    host_reference: str,
    *,
    newest: int,
    last_seq: int | None = None,
    metadata: dict[str, Any] | None = None,
) -> tuple[BoundaryRecord, bool]:
    """Record the boundary; whether it is new, for another may have been first."""
    _, created = CompactionBoundary.objects.get_or_create(
        conversation_id=conversation_id,
        host_reference=host_reference,
        defaults={"last_seq": newest if last_seq is None else last_seq, "metadata": metadata or {}},
    )
    # Read back: the moment, and numbers in the metadata, are as the database has written them.
    boundary = _recorded(conversation_id, host_reference, last_seq=last_seq, metadata=metadata)
    assert boundary is not None
    return boundary, created


def _storable(metadata: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The metadata as JSON; Invalid for what the database cannot hold exactly."""
    if metadata is None:
        return None
    require_metadata(metadata, most=StorePolicy.from_settings().max_metadata_bytes)
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(metadata), allow_nan=False))
        is_storable = is_plain(plain)
    except (TypeError, ValueError, RecursionError) as wrong:
        raise Invalid("metadata must be an object as JSON knows it.") from wrong
    if not is_storable:
        raise Invalid(f"metadata must not contain NUL or lone surrogates, nor have more than {MOST_LEVELS} levels.")
    return plain
