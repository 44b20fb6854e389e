"""One run of compaction: makes summaries, writes them, records itself."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

import pglock
import structlog
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from compaction import observability
from compaction.models import CompactionJob
from compaction.planning import planner
from compaction.planning.planner import Slot
from compaction.planning.significance import significance
from compaction.planning.steps import Step, Steps, leaf_and_condensed_steps
from compaction.policy import CompactionPolicy
from compaction.rendering import context_cost_of
from compaction.sources import (
    ChunkSources,
    new_summary,
    read_slots,
    read_sources,
    read_summary_texts,
    read_turns,
    text_of,
)
from compaction.summarizing.escalation import Escalation
from compaction.summarizing.summarizer import SummaryRequest
from compaction.types import CompactionResult, Outcome, Reason
from conversations import sql
from conversations.errors import ConversationBusy
from conversations.models import Conversation
from conversations.store.conversations import ConversationStore
from conversations.types import NewPart, NewSummary, PartType, SummaryKind
from conversations.work.queue import Lease

logger = structlog.get_logger(__name__)

_STATEMENTS = sql.load("compaction/runs.sql")

# The key space of our advisory locks, easy to find in pg_locks and in query logs.
COMPACTION = "lcm.compaction"


@contextmanager
def compaction_lock(conversation_id: int) -> Iterator[None]:
    """Hold the conversation's advisory lock, or raise ConversationBusy at once.

    It is a lock of the session, not of a transaction, for no transaction may stay open while a summarizer works. It
    ends with the connection, so a killed worker leaves none behind. What it guards is work, not truth: should a
    connection break and the lock be lost, the replacement of a range still succeeds for one writer only.
    """
    with pglock.advisory(f"{COMPACTION}.{conversation_id}", timeout=0) as acquired:
        if not acquired:
            raise ConversationBusy(f"Conversation {conversation_id} is being compacted already; try again shortly.")
        yield


def abandon_runs(conversation_id: int) -> None:
    """Close the records of runs whose worker died.

    The caller holds the lock, so no run is in progress. What they wrote is complete and stays.
    """
    for (reason,) in sql.rows(_STATEMENTS["abandon_runs"], {"conversation_id": conversation_id}):
        observability.abandoned(reason)


@dataclass(frozen=True)
class Progress:
    """What a run has done so far; a failed write restores the one before."""

    tokens: int
    messages: int
    leaf: int = 0
    condensed: int = 0
    redone: int = 0
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def summaries(self) -> int:
        return self.leaf + self.condensed + self.redone

    def with_summary(self, kind: SummaryKind, *, saved: int, messages: int) -> Progress:
        is_leaf = kind is SummaryKind.LEAF
        return replace(
            self,
            tokens=self.tokens - saved,
            messages=self.messages - messages,
            leaf=self.leaf + is_leaf,
            condensed=self.condensed + (not is_leaf),
        )


@dataclass(frozen=True)
class Made:
    """A summary ready to be written, its sources, and its cost in the context."""

    summary: NewSummary
    message_ids: tuple[int, ...]
    source_ids: tuple[str, ...]
    item_tokens: int


@dataclass
class Run:
    """A run in progress. What it has written is final.

    `tokens_before` is what the context cost when the run read it, and `progress.tokens` what that same context costs
    with the run's summaries in it. Messages that are appended meanwhile are in neither, so the difference is what the
    run took out, and neither is ever negative.
    """

    store: ConversationStore
    escalation: Escalation
    policy: CompactionPolicy
    conversation: Conversation
    reason: Reason
    lease: Lease[CompactionJob] | None = None
    run_id: str = field(default_factory=lambda: f"run_{secrets.token_hex(8)}")
    started_at: datetime = field(default_factory=timezone.now)
    is_counted: bool = False

    def __post_init__(self) -> None:
        self.conversation_id = self.conversation.conversation_id
        self.deadline = time.monotonic() + self.policy.run_deadline_seconds
        self.decision = self.policy.decide(self.conversation_id, self.conversation.counters)
        # The figures of a run that ends without reading the context.
        self.tokens_before = self.conversation.active_tokens
        self.progress = Progress(tokens=self.conversation.active_tokens, messages=self.conversation.active_messages)

    def execute(self, work: Callable[[Run], Outcome]) -> CompactionResult:
        """Do the work and record its outcome, also of a failure."""
        try:
            outcome = work(self)
        except BaseException:
            if self.progress.summaries:
                self.record(Outcome.FAILED)
            self.log("compaction_failed")
            raise
        is_worth_a_row = bool(self.progress.summaries or self.progress.details) or outcome is Outcome.EXHAUSTED
        if is_worth_a_row:
            self.record(outcome)
        self.log("compaction_finished", outcome=outcome.value)
        return CompactionResult(
            conversation_id=self.conversation_id,
            reason=self.reason,
            outcome=outcome,
            tokens_before=self.tokens_before,
            tokens_after=self.progress.tokens,
            leaf_summaries=self.progress.leaf,
            condensed_summaries=self.progress.condensed,
            redone_summaries=self.progress.redone,
            run_id=self.run_id if is_worth_a_row else None,
            details=self.progress.details,
        )

    def compact(self) -> Outcome:
        """Make leaf summaries, oldest first, then condensed ones, shallowest first."""
        if self.reason.is_automatic and not self.decision.should_compact:
            return Outcome.NOT_NEEDED
        if self.reason.is_automatic and self._is_insignificant():
            return Outcome.SKIPPED
        if not self.follow(leaf_and_condensed_steps(self.read_context(), self.policy)):
            return Outcome.STOPPED
        if self.reason.is_automatic and self._is_pressed:
            return Outcome.EXHAUSTED
        return Outcome.COMPACTED if self.progress.summaries else Outcome.NOTHING_TO_DO

    def follow(self, steps: Steps) -> bool:
        """Make the summary of each step; false if a bound of the run ended them early."""
        slot: Slot | None = None
        while not self._is_enough:
            try:
                step = steps.send(slot)
            except StopIteration:
                return True
            if self.is_out_of_bounds:
                return False
            slot = self._summarize(step)
        return True

    @property
    def is_out_of_bounds(self) -> bool:
        return self.progress.summaries >= self.policy.max_passes or time.monotonic() > self.deadline

    @property
    def _is_enough(self) -> bool:
        """Whether an automatic run has made enough room; a person gets all there is."""
        return self.reason.is_automatic and self.policy.is_relieved(
            active_tokens=self.progress.tokens, active_messages=self.progress.messages
        )

    @property
    def _is_pressed(self) -> bool:
        return (
            self.progress.tokens >= self.policy.threshold_tokens
            or self.progress.messages > self.policy.max_active_messages
        )

    def _is_insignificant(self) -> bool:
        """Whether nothing is worth a summary; the details keep the figures."""
        if not self.policy.significance_gate or self.decision.is_hard:
            return False
        found = significance(read_turns(self.conversation_id), summaries=read_summary_texts(self.conversation_id))
        if found.is_trivial:
            self.note({"significance": found.as_details()})
        return found.is_trivial

    def read_context(self) -> list[Slot]:
        """Read the slots that the run plans on; its figures are about these slots."""
        slots = read_slots(self.conversation_id)
        self.start_from(tokens=planner.sum_tokens(slots), messages=sum(slot.is_raw for slot in slots))
        return slots

    def start_from(self, *, tokens: int, messages: int) -> None:
        """Take what the context cost when it was read as the run's first figures."""
        self.tokens_before = tokens
        self.progress = replace(self.progress, tokens=tokens, messages=messages)

    def note(self, details: Mapping[str, Any]) -> None:
        """Keep these figures with the run's record."""
        self.progress = replace(self.progress, details=details)

    def _summarize(self, step: Step) -> Slot | None:
        """The slot of the new summary, or None if it would not be cheaper."""
        previous_id = step.previous.summary_id if step.previous else None
        made = self.make(read_sources(step.chunk), target_tokens=step.target_tokens, previous_id=previous_id)
        if made is None or made.item_tokens >= planner.sum_tokens(step.chunk):
            return None
        saved = planner.sum_tokens(step.chunk) - made.item_tokens
        after = self.progress.with_summary(made.summary.kind, saved=saved, messages=len(made.message_ids))
        [ordinal] = self.write([made], after)
        assert ordinal is not None
        return Slot(
            ordinal=ordinal,
            tokens=made.item_tokens,
            summary_id=made.summary.summary_id,
            depth=made.summary.depth,
        )

    def make(
        self,
        read: ChunkSources,
        *,
        target_tokens: int,
        previous_id: str | None = None,
        supersedes_id: str | None = None,
    ) -> Made | None:
        """A summary of these sources, or None if it would not be shorter than they are.

        No transaction is open here: a model may take its time.
        """
        accepted = self.escalation.summarize(
            SummaryRequest(
                sources=read.sources,
                target_tokens=target_tokens,
                count_tokens=self.store.tokens.count,
                depth=read.depth,
                # Only a language model can leave out what is known already.
                previous=text_of(previous_id) if previous_id and self.escalation.models else "",
                instructions=self.policy.summary_instructions,
                deadline=self.deadline,
            )
        )
        if accepted is None:
            return None
        summary = new_summary(
            read,
            accepted,
            conversation_id=self.conversation_id,
            run_id=self.run_id,
            token_counter=self.store.tokens.name,
            supersedes_id=supersedes_id,
        )
        return Made(
            summary=summary,
            message_ids=read.message_ids,
            source_ids=read.summary_ids,
            item_tokens=context_cost_of(self.store.tokens)(summary),
        )

    def write(self, all_made: Sequence[Made], after: Progress) -> list[int | None]:
        """Write summaries, context, counters and the run's row, all or nothing.

        The last summary is shown in the context; those before it are its sources.
        """
        before = self.progress
        try:
            with transaction.atomic():
                ordinals = [
                    self.store.write_summary(
                        summary=made.summary,
                        message_ids=made.message_ids,
                        source_ids=made.source_ids,
                        item_tokens=made.item_tokens if made is all_made[-1] else None,
                        mark=self._mark_of(made.summary),
                    )
                    for made in all_made
                ]
                if self.lease is not None:
                    # After the conversation's row, which every writer locks first. A job that makes progress forgets
                    # its earlier attempts.
                    self.lease.renew(attempts=1)
                self.progress = after
                self.record(Outcome.RUNNING)
        except BaseException:
            # Rolled back, it was not made: the run must not claim it.
            self.progress = before
            raise
        for made in all_made:
            summary = made.summary
            observability.created(summary)
            self.log("summary_created", summary_id=summary.summary_id, depth=summary.depth, summary_level=summary.level)
        return ordinals

    def _mark_of(self, summary: NewSummary) -> NewPart:
        """The synthetic, ignored compaction part for the last source message."""
        return NewPart(
            part_type=PartType.COMPACTION,
            is_synthetic=True,
            is_ignored=True,
            compaction_auto=self.reason.is_automatic,
            metadata={"run_id": self.run_id, "summary_id": summary.summary_id},
        )

    def log(self, event: str, **more: object) -> None:
        logger.info(
            event,
            compaction_id=self.run_id,
            conversation_id=self.conversation_id,
            session_id=self.conversation.session_id,
            trigger_reason=self.reason.value,
            token_before=self.tokens_before,
            token_after=self.progress.tokens,
            **more,
        )

    def record(self, outcome: Outcome) -> None:
        """Write the run's row, or update it."""
        sql.first_row(
            _STATEMENTS["record_run"],
            {
                "run_id": self.run_id,
                "conversation_id": self.conversation_id,
                "job_id": self.lease.row.job_id if self.lease is not None else None,
                "reason": self.reason.value,
                "outcome": outcome.value,
                "started_at": self.started_at,
                "finished_at": None if outcome is Outcome.RUNNING else timezone.now(),
                "tokens_before": self.tokens_before,
                "tokens_after": self.progress.tokens,
                "leaf": self.progress.leaf,
                "condensed": self.progress.condensed,
                "redone": self.progress.redone,
                "details": json.dumps(self.progress.details),
            },
        )
        if outcome is not Outcome.RUNNING and not self.is_counted:
            self.is_counted = True
            transaction.on_commit(partial(self._count, outcome))
        if outcome in (Outcome.EXHAUSTED, Outcome.SKIPPED):
            # Another run before anything has changed would find nothing again.
            Conversation.objects.filter(pk=self.conversation_id).update(
                rest_until_seq=F("next_seq") - 1 + self.policy.fresh_tail_count
            )

    def _count(self, outcome: Outcome) -> None:
        observability.ended(
            reason=self.reason,
            outcome=outcome,
            seconds=(timezone.now() - self.started_at).total_seconds(),
            saved=self.tokens_before - self.progress.tokens,
        )
