"""For hosts that compact their own context: flush before, verify coverage after.

A host is an agent program that shortens its context by itself. Before that, it calls `flush`, which summarizes the
messages that the host is about to drop. `flush` also records the boundary, which is the newest message, under a name
that the host chooses. This name always means this boundary.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from compaction.engine import CompactionEngine
from compaction.models import CompactionBoundary
from compaction.run import Run
from compaction.types import BoundaryRecord, Coverage, CoverageGap, FlushResult, GapKind, Outcome, Reason
from conversations import sql
from conversations.errors import Conflict, Invalid, NotFound
from conversations.policy import StorePolicy
from conversations.scope import EVERYTHING, Scope
from conversations.sql import snapshot
from conversations.store.conversations import plain_metadata

# Maximum number of gaps that a report lists; all gaps are counted.
MOST_GAPS = 100

_STATEMENTS = sql.load("compaction/recoverability.sql")


@dataclass(frozen=True)
class HostCompaction:
    """The operations that a host calls before and after its own compaction."""

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

        A host is the agent program that uses LCM. Everything outside the fresh tail is summarized. The boundary is the
        newest message at the moment of the call. If `host_reference` is already recorded, its boundary is returned and
        nothing is compacted. Raises NotFound; Conflict if the metadata differ from the recorded ones; ConversationBusy,
        retryable, while another compaction is in progress: nothing is recorded then.
        """
        return self._flush(conversation_id, host_reference, metadata, newest=self._head(conversation_id))

    def flush_in_background(
        self, *, conversation_id: int, host_reference: str, metadata: Mapping[str, Any] | None = None
    ) -> FlushResult:
        """Record the boundary and queue the pending summaries; otherwise as `flush`."""
        newest = self._head(conversation_id)
        return self._flush(conversation_id, host_reference, metadata, newest=newest, in_background=True)

    def flush_all(self, *, conversation_id: int, host_reference: str, last_seq: int | None = None) -> FlushResult:
        """Flush for a host that cuts every message: summarize the fresh tail, too.

        The boundary is `last_seq`, default the newest message. Messages after it are not summarized. If the run stops
        at its limits, the job that continues it leaves the fresh tail as it is.
        """
        head = self._head(conversation_id)
        newest = head if last_seq is None else min(last_seq, head)
        work = partial(Run.compact, last_seq=newest)
        return self._flush(conversation_id, host_reference, None, newest=newest, work=work)

    def _head(self, conversation_id: int) -> int:
        return self.scope.conversation(conversation_id).head_seq

    def _flush(
        self,
        conversation_id: int,
        host_reference: str,
        metadata: Mapping[str, Any] | None,
        *,
        newest: int,
        in_background: bool = False,
        work: Callable[[Run], Outcome] = Run.compact,
    ) -> FlushResult:
        plain = _storable(metadata)
        if (recorded := _find_recorded(conversation_id, host_reference, metadata=plain)) is not None:
            return FlushResult(boundary=recorded, created=False)
        # No transaction is open here, for a model may be called.
        result = (
            None if in_background else self.engine.run(conversation_id=conversation_id, reason=Reason.MANUAL, work=work)
        )
        # A run that stopped at its limits has left work: a worker continues, and the host need not wait.
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
        """Record where the host has cut its context: after the message `last_seq`.

        A host is the agent program that uses LCM. Default for `last_seq`: the newest message. If `host_reference` is
        already recorded, its boundary is returned. Raises NotFound; Conflict if the given values differ from the
        recorded ones; Invalid if the conversation has no message `last_seq`.
        """
        conversation = self.scope.conversation(conversation_id)
        newest = conversation.next_seq - 1
        plain = _storable(metadata)
        recorded = _find_recorded(conversation_id, host_reference, last_seq=last_seq, metadata=plain)
        if recorded is not None:
            return recorded
        if last_seq is not None and not 0 <= last_seq <= newest:
            raise Invalid(f"last_seq: there is no message {last_seq}; the newest has seq {newest}.")
        head = conversation.head_seq
        return _record(conversation_id, host_reference, newest=head, last_seq=last_seq, metadata=plain)[0]

    def list_boundaries(
        self, *, conversation_id: int, before_reference: str | None = None, limit: int = 100
    ) -> list[BoundaryRecord]:
        """List the boundaries of a conversation, newest first.

        Raises NotFound if there is no such conversation.
        """
        self.scope.conversation(conversation_id)
        boundaries = CompactionBoundary.objects.filter(conversation_id=conversation_id).order_by("-boundary_id")
        if before_reference is not None:
            last = self._get_boundary(conversation_id, before_reference)
            boundaries = boundaries.filter(pk__lt=boundaries.filter(host_reference=last.host_reference).values("pk"))
        return [boundary.as_record() for boundary in boundaries[:limit]]

    def verify_coverage(
        self, *, conversation_id: int, host_reference: str | None = None, idempotency_keys: Sequence[str] = ()
    ) -> Coverage:
        """After the host has compacted: check that every message can be recovered.

        A host is the agent program that uses LCM. A message can be recovered if it is in the active context itself, is
        covered by a summary there, or is off the active path because the head was moved. Every other message, and every
        missing seq, is a gap. The check covers the messages up to the boundary `host_reference` (default: the whole
        conversation). `idempotency_keys` are keys of messages that the host believes to be stored; the response lists
        those that are not. Raises NotFound if there is no such conversation or boundary.
        """
        # One snapshot: an append between two reads would look like a gap.
        with snapshot():
            conversation = self.scope.conversation(conversation_id)
            newest = conversation.next_seq - 1
            last_seq = (
                newest if host_reference is None else self._get_boundary(conversation_id, host_reference).last_seq
            )
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

    def _get_boundary(self, conversation_id: int, host_reference: str) -> BoundaryRecord:
        found = _find_recorded(conversation_id, host_reference)
        if found is None:
            raise NotFound(f"Conversation {conversation_id} has no boundary {host_reference[:80]!r}.")
        return found


def _find_recorded(
    conversation_id: int, host_reference: str, *, last_seq: int | None = None, metadata: dict[str, Any] | None = None
) -> BoundaryRecord | None:
    """Return the boundary of this name, if any; raises Conflict if a value differs."""
    boundaries = CompactionBoundary.objects.filter(conversation_id=conversation_id, host_reference=host_reference)
    found = boundaries.first()
    if found is None:
        return None
    if last_seq is not None and last_seq != found.last_seq:
        differs = "last_seq"
    # Compared by the database: jsonb normalizes numbers such as 1e23, which Python would find unequal.
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
    """Return the boundary of this name, inserted if missing, and whether it is new."""
    _, created = CompactionBoundary.objects.get_or_create(
        conversation_id=conversation_id,
        host_reference=host_reference,
        defaults={"last_seq": newest if last_seq is None else last_seq, "metadata": metadata or {}},
    )
    # The row is read back, to return its time, and the numbers in the metadata as the database stores them.
    boundary = _find_recorded(conversation_id, host_reference, last_seq=last_seq, metadata=metadata)
    assert boundary is not None
    return boundary, created


def _storable(metadata: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the metadata as plain JSON; raises Invalid if jsonb cannot store it."""
    if metadata is None:
        return None
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(metadata), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as wrong:
        raise Invalid("metadata must be a JSON object.") from wrong
    return plain_metadata(plain, most=StorePolicy.from_settings().max_metadata_bytes)
