"""Makes the text that will stand for a chunk, with no transaction open, and the summary that carries it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from compaction.planning.costs import context_cost_of
from compaction.policy import CompactionPolicy
from compaction.sources import ChunkSources, text_of
from compaction.summarizing.escalation import Accepted, Escalation
from compaction.summarizing.summarizer import SummaryRequest
from conversations.content import hashing
from conversations.content.tokens import TokenEstimator
from conversations.types import NewSummary, SummaryKind


@dataclass(frozen=True)
class Made:
    """A summary that is ready to be written: its sources, and what it will cost in the context."""

    summary: NewSummary
    message_ids: tuple[int, ...]
    source_ids: tuple[str, ...]
    item_tokens: int


@dataclass(frozen=True)
class Maker:
    """Asks for texts within one run, in one conversation."""

    escalation: Escalation
    tokens: TokenEstimator
    policy: CompactionPolicy
    conversation_id: int
    run_id: str
    # The moment of time.monotonic() at which the run must be over.
    deadline: float

    def make(
        self,
        read: ChunkSources,
        *,
        target_tokens: int,
        previous_id: str | None = None,
        supersedes_id: str | None = None,
    ) -> Made | None:
        """A summary of these sources, or None if it would not be shorter than they are. A model may take its time."""
        accepted = self.escalation.summarize(
            SummaryRequest(
                sources=read.sources,
                target_tokens=target_tokens,
                count_tokens=self.tokens.count,
                depth=read.depth,
                # Only who is asked in words can use what is known already.
                previous=text_of(previous_id) if previous_id and self.escalation.models else "",
                instructions=self.policy.summary_instructions,
                deadline=self.deadline,
            )
        )
        if accepted is None:
            return None
        summary = self._summary_of(read, accepted, supersedes_id)
        return Made(
            summary=summary,
            message_ids=read.message_ids,
            source_ids=read.summary_ids,
            item_tokens=context_cost_of(self.tokens)(summary),
        )

    def _summary_of(self, read: ChunkSources, accepted: Accepted, supersedes_id: str | None) -> NewSummary:
        draft = accepted.draft
        return NewSummary(
            summary_id=f"sum_{secrets.token_hex(8)}",
            conversation_id=self.conversation_id,
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
            token_counter=self.tokens.name,
            run_id=self.run_id,
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
        # For a model that may make it, or one of its sources, another time.
        quality["waits"] = True
    return quality
