"""One execution of compaction under the conversation's lock: plans, summarizes, writes, and keeps its own record."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence

import structlog
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from compaction import planner
from compaction.escalation import Accepted, Escalation
from compaction.jobs import Claim
from compaction.models import CompactionRun
from compaction.planner import Slot
from compaction.policy import CompactionPolicy
from compaction.rendering import render_summary
from compaction.sources import ChunkSources, read_slots, read_sources
from compaction.types import CompactionResult, Outcome, Reason
from conversations import hashing
from conversations.models import Conversation
from conversations.store import ConversationStore
from conversations.store.base import MESSAGE_OVERHEAD_TOKENS
from conversations.types import NewPart, NewSummary, PartType, SummaryKind

logger = structlog.get_logger(__name__)


def abandon_runs(conversation_id: int) -> None:
    """Close the records of runs whose worker is gone: who calls this holds the lock, so no run is at work.

    What they wrote is complete and stays.
    """
    running = CompactionRun.objects.filter(conversation_id=conversation_id, outcome=Outcome.RUNNING)
    running.update(outcome=Outcome.ABANDONED, finished_at=timezone.now())


class Run:
    """A run in progress. What it has written is final; what it knows of the context is its own and up to date."""

    def __init__(
        self,
        *,
        store: ConversationStore,
        escalation: Escalation,
        policy: CompactionPolicy,
        conversation: Conversation,
        reason: Reason,
        claim: Claim | None,
    ) -> None:
        self.store = store
        self.escalation = escalation
        self.policy = policy
        self.conversation_id = conversation.conversation_id
        self.session_id = conversation.session_id
        self.reason = reason
        self.claim = claim
        self.run_id = f"run_{secrets.token_hex(8)}"
        self.started_at = timezone.now()
        self.deadline = time.monotonic() + policy.run_deadline_seconds
        self.tokens_before = conversation.active_tokens
        self.tokens = conversation.active_tokens
        self.messages = conversation.active_messages
        self.made = {SummaryKind.LEAF: 0, SummaryKind.CONDENSED: 0}

    def execute(self) -> CompactionResult:
        try:
            finished = self._leaf_and_condensed_passes()
        except BaseException:
            if self._has_written():
                self._record(Outcome.FAILED)
            self._log("compaction_failed")
            raise
        outcome = self._outcome(finished)
        if self._has_written() or outcome is Outcome.EXHAUSTED:
            self._record(outcome)
        self._log("compaction_finished", outcome=outcome.value)
        return CompactionResult(
            conversation_id=self.conversation_id,
            reason=self.reason,
            outcome=outcome,
            tokens_before=self.tokens_before,
            tokens_after=self.tokens,
            leaf_summaries=self.made[SummaryKind.LEAF],
            condensed_summaries=self.made[SummaryKind.CONDENSED],
            run_id=self.run_id if self._has_written() or outcome is Outcome.EXHAUSTED else None,
        )

    def _leaf_and_condensed_passes(self) -> bool:
        """Whether the run came to its natural end; false if a bound stopped it."""
        slots = read_slots(self.conversation_id)
        protected = planner.fresh_tail(slots, self.policy)
        stands_for: dict[int, Slot] = {}
        gone: set[int] = set()
        for chunk in planner.leaf_chunks(slots, protected, self.policy):
            if self._is_enough():
                return True
            if self._is_out_of_bounds():
                return False
            slot = self._summarize(chunk, SummaryKind.LEAF, planner.leaf_target(chunk, self.policy))
            if slot is not None:
                gone.update(source.ordinal for source in chunk)
                stands_for[slot.ordinal] = slot
        slots = [
            stands_for.get(slot.ordinal, slot)
            for slot in slots
            if slot.ordinal in stands_for or slot.ordinal not in gone
        ]
        while not self._is_enough():
            condensed = planner.condensed_chunk(slots, protected, self.policy)
            if condensed is None:
                return True
            if self._is_out_of_bounds():
                return False
            target = planner.condensed_target(condensed, self.policy)
            slot = self._summarize(condensed, SummaryKind.CONDENSED, target)
            if slot is None:
                return True
            merged = {source.ordinal for source in condensed}
            slots = [
                slot if each.ordinal == slot.ordinal else each
                for each in slots
                if each.ordinal == slot.ordinal or each.ordinal not in merged
            ]
        return True

    def _is_enough(self) -> bool:
        """An automatic run makes room for some time to come, and no more; a person gets all the room there is."""
        return self.reason.is_automatic and planner.is_relieved(
            active_tokens=self.tokens, active_messages=self.messages, policy=self.policy
        )

    def _is_out_of_bounds(self) -> bool:
        return sum(self.made.values()) >= self.policy.max_passes or time.monotonic() > self.deadline

    def _summarize(self, chunk: Sequence[Slot], kind: SummaryKind, target_tokens: int) -> Slot | None:
        """The slot that now stands for the chunk, or None if a summary would not have been cheaper."""
        read = read_sources(chunk)
        # No transaction is open here: a summarizer may take as long as a model does.
        accepted = self.escalation.summarize(sources=read.sources, target_tokens=target_tokens, depth=read.depth)
        if accepted is None:
            return None
        summary = self._summary_of(kind, read, accepted)
        return self._write(chunk, read, summary)

    def _summary_of(self, kind: SummaryKind, read: ChunkSources, accepted: Accepted) -> NewSummary:
        draft = accepted.draft
        return NewSummary(
            summary_id=f"sum_{secrets.token_hex(8)}",
            conversation_id=self.conversation_id,
            kind=kind,
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
            token_counter=self.store.tokens.name,
            run_id=self.run_id,
            file_ids=read.file_ids,
            quality={"kept": draft.quality, "left_out": draft.left_out},
        )

    def _write(self, chunk: Sequence[Slot], read: ChunkSources, summary: NewSummary) -> Slot | None:
        """Summary, links, context, part, counters and the run's row: together or not at all."""
        before = dict(self.made), self.tokens, self.messages
        try:
            slot = self._write_together(chunk, read, summary)
        except BaseException:
            # Rolled back, it was not made: the run must not claim it.
            self.made, self.tokens, self.messages = before
            raise
        if slot is not None:
            self._log("summary_created", summary_id=slot.summary_id, depth=slot.depth, level=summary.level.value)
        return slot

    def _write_together(self, chunk: Sequence[Slot], read: ChunkSources, summary: NewSummary) -> Slot | None:
        with transaction.atomic():
            # The conversation's row first, as every writer does, so that writers queue up and never cross.
            self.store.scope.conversation(self.conversation_id, locked=True)
            if self.claim is not None:
                self.claim.renew()
            record = self.store.insert_summary(summary=summary)
            item_tokens = self.store.tokens.count(render_summary(record)) + MESSAGE_OVERHEAD_TOKENS
            if item_tokens >= planner.sum_tokens(chunk):
                transaction.set_rollback(True)
                return None
            self.store.link_summary_to_messages(summary_id=record.summary_id, message_ids=read.message_ids)
            self.store.link_summary_to_parents(summary_id=record.summary_id, source_ids=read.summary_ids)
            ordinal = self.store.replace_context_range_with_summary(
                conversation_id=self.conversation_id,
                summary_id=record.summary_id,
                source_count=len(read.sources),
                item_tokens=item_tokens,
            )
            self._leave_mark(read.last_message_id, record.summary_id)
            self.made[summary.kind] += 1
            self.tokens += item_tokens - planner.sum_tokens(chunk)
            self.messages -= len(read.message_ids)
            self._record(Outcome.RUNNING)
        return Slot(ordinal=ordinal, tokens=item_tokens, summary_id=record.summary_id, depth=record.depth)

    def _leave_mark(self, message_id: int, summary_id: str) -> None:
        """The compaction part on the last source message: synthetic, ignored, and never part of what was said."""
        self.store.create_message_parts(
            message_id=message_id,
            parts=[
                NewPart(
                    part_type=PartType.COMPACTION,
                    is_synthetic=True,
                    is_ignored=True,
                    compaction_auto=self.reason.is_automatic,
                    metadata={"run_id": self.run_id, "summary_id": summary_id},
                )
            ],
        )

    def _log(self, event: str, **more: object) -> None:
        logger.info(
            event,
            compaction_id=self.run_id,
            conversation_id=self.conversation_id,
            session_id=self.session_id,
            trigger_reason=self.reason.value,
            token_before=self.tokens_before,
            token_after=self.tokens,
            **more,
        )

    def _outcome(self, finished: bool) -> Outcome:
        if not finished:
            return Outcome.STOPPED
        if self.reason.is_automatic and self._still_pressed():
            return Outcome.EXHAUSTED
        return Outcome.COMPACTED if self._has_written() else Outcome.NOTHING_TO_DO

    def _still_pressed(self) -> bool:
        return self.tokens >= planner.threshold_tokens(self.policy) or self.messages > self.policy.max_active_messages

    def _has_written(self) -> bool:
        return any(self.made.values())

    def _record(self, outcome: Outcome) -> None:
        run = CompactionRun(
            run_id=self.run_id,
            conversation_id=self.conversation_id,
            job_id=self.claim.job_id if self.claim is not None else None,
            reason=self.reason,
            outcome=outcome,
            started_at=self.started_at,
            finished_at=None if outcome is Outcome.RUNNING else timezone.now(),
            tokens_before=self.tokens_before,
            tokens_after=self.tokens,
            leaf_summaries=self.made[SummaryKind.LEAF],
            condensed_summaries=self.made[SummaryKind.CONDENSED],
        )
        moving = ["outcome", "finished_at", "tokens_after", "leaf_summaries", "condensed_summaries"]
        CompactionRun.objects.bulk_create([run], update_conflicts=True, unique_fields=["run_id"], update_fields=moving)
        if outcome is Outcome.EXHAUSTED:
            # Asked again before anything has changed, it would find nothing again.
            Conversation.objects.filter(pk=self.conversation_id).update(
                rest_until_seq=F("next_seq") - 1 + self.policy.fresh_tail_count
            )
