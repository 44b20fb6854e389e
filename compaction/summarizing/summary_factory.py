"""Build the record of a new summary from its sources and accepted text."""

from __future__ import annotations

import secrets

from compaction.sources import ChunkSources
from compaction.summarizing.escalation import Accepted
from conversations.content import hashing
from conversations.types import NewSummary, SummaryKind


def new_summary(
    read: ChunkSources,
    accepted: Accepted,
    *,
    conversation_id: int,
    run_id: str,
    token_counter: str,
    supersedes_id: str | None = None,
) -> NewSummary:
    """The row to write, with how it was made and how good it is."""
    draft = accepted.draft
    return NewSummary(
        summary_id=f"sum_{secrets.token_hex(8)}",
        conversation_id=conversation_id,
        kind=SummaryKind.LEAF if read.depth == 0 else SummaryKind.CONDENSED,
        depth=read.depth,
        content=draft.text,
        token_count=accepted.tokens,
        first_seq=read.first_seq,
        last_seq=read.last_seq,
        earliest_at=read.earliest_at,
        latest_at=read.latest_at,
        source_count=len(read.sources),
        descendant_count=read.descendant_count,
        source_tokens=read.source_tokens,
        level=accepted.level,
        model=draft.model,
        summary_hash=hashing.summary_hash(read.hashes, draft.text).hex(),
        token_counter=token_counter,
        run_id=run_id,
        file_ids=read.file_ids,
        quality=_quality_of(read, accepted),
        retention=accepted.retention,
        is_degraded=accepted.lack is not None or bool(read.degraded_ids),
        supersedes_id=supersedes_id,
        prompt_hash=draft.prompt_hash or "",
        tokens_in=draft.tokens_in,
        tokens_out=draft.tokens_out,
        duration_ms=accepted.duration_ms,
    )


def _quality_of(read: ChunkSources, accepted: Accepted) -> dict[str, object]:
    """What is known of how good the text is, and why it is no better."""
    quality: dict[str, object] = {"kept": accepted.draft.quality, "left_out": accepted.draft.left_out}
    if accepted.lack is not None:
        quality["lack"] = accepted.lack.value
    if accepted.failures:
        quality["failures"] = list(accepted.failures)
    if read.degraded_ids:
        quality["degraded_sources"] = list(read.degraded_ids)
    if read.is_waiting or (accepted.lack is not None and accepted.lack.may_pass):
        # A model may make it, or one of its sources, another time.
        quality["waits"] = True
    return quality
