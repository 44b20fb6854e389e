"""One run of compaction: makes summaries, writes them, and records the run."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import Any

import pglock
import structlog
from django.db import transaction
from django.utils import timezone
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from compaction import observability
from compaction.models import CompactionJob, CompactionRun
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
    withheld_items,
)
from compaction.summarizing.escalation import Escalation
from compaction.summarizing.summarizer import SummaryRequest
from compaction.types import CompactionResult, Outcome, Reason
from conversations.errors import ConversationBusy
from conversations.models import Conversation
from conversations.models.columns import record_of
from conversations.store.conversations import ConversationStore
from conversations.types import Counters, NewPart, NewSummary, PartType, SummaryKind
from conversations.work.queue import Lease

logger = structlog.get_logger(__name__)

# The columns of a run's row that change during the run.
_UPDATED = (
    "outcome", "finished_at", "tokens_after", "leaf_summaries", "condensed_summaries", "redone_summaries", "details",
)  # fmt: skip

# The pause between two attempts to compact a conversation that another process compacts.
_BUSY_PAUSE_SECONDS = 0.1
# The key space of our advisory locks, easy to find in pg_locks and in query logs.
COMPACTION = "lcm.compaction"


@contextmanager
def compaction_lock(conversation_id: int) -> Iterator[None]:
    """Hold the conversation's advisory lock, or raise ConversationBusy at once.

    It is a session-level lock, because no transaction may stay open while a summarizer works. The lock ends with the
    connection, so a killed worker leaves no lock behind. It only prevents duplicate work: if the lock is lost with its
    connection, still only one writer can replace a range of the context.
    """
    with pglock.advisory(f"{COMPACTION}.{conversation_id}", timeout=0) as acquired:
        if not acquired:
            raise ConversationBusy(f"Conversation {conversation_id} is being compacted already; try again shortly.")
        yield


def retrying_while_busy(seconds: float) -> Retrying:
    """Return an object that calls a function again while it raises ConversationBusy.

    After `seconds`, the error is raised.
    """
    return Retrying(
        retry=retry_if_exception_type(ConversationBusy),
        wait=wait_fixed(_BUSY_PAUSE_SECONDS),
        stop=stop_after_delay(seconds),
        reraise=True,
    )


def abandon_runs(conversation_id: int) -> None:
    """Close the records of runs whose worker died.

    The caller holds the lock, so no run is in progress. The summaries that these runs wrote are complete and stay.
    """
    for run in CompactionRun.objects.filter(conversation_id=conversation_id, outcome=Outcome.RUNNING):
        run.outcome, run.finished_at = Outcome.ABANDONED, timezone.now()
        run.save(update_fields=["outcome", "finished_at"])
        observability.count_abandoned_run(run.reason)


@dataclass(frozen=True)
class Made:
    """A summary ready to be written, its sources, and its cost in the context."""

    summary: NewSummary
    sources: ChunkSources
    item_tokens: int


@dataclass
class Run:
    """A run in progress. The summaries that it has written are final.

    `row` is its record: `tokens_before` is the size of the context when the run read it, and `tokens_after` that of the
    same context with the run's summaries in it. Messages that are appended meanwhile count in neither, so the
    difference is the tokens that the run freed, and neither is ever negative.
    """

    store: ConversationStore
    escalation: Escalation
    policy: CompactionPolicy
    conversation: Conversation
    reason: Reason
    lease: Lease[CompactionJob] | None = None

    def __post_init__(self) -> None:
        self.conversation_id = self.conversation.conversation_id
        self.deadline = time.monotonic() + self.policy.run_deadline_seconds
        # Details shown with the run, such as the steps of a plan; stored in the row with each write.
        self.details: Mapping[str, Any] = {}
        # This count, and those in the row below, are for a run that ends without reading the context.
        self.messages = self.conversation.active_messages
        self.row = CompactionRun(
            run_id=f"run_{secrets.token_hex(8)}",
            conversation=self.conversation,
            job=self.lease.row if self.lease is not None else None,
            reason=self.reason,
            outcome=Outcome.RUNNING,
            started_at=timezone.now(),
            tokens_before=self.conversation.active_tokens,
            tokens_after=self.conversation.active_tokens,
        )

    def execute(self, work: Callable[[Run], Outcome]) -> CompactionResult:
        """Do the work and record its outcome, even if it fails."""
        try:
            outcome = work(self)
        except BaseException:
            if self.summaries or self.details:
                self.record(Outcome.FAILED)
            self.log("compaction_failed")
            raise
        is_worth_a_row = bool(self.summaries or self.details) or outcome is Outcome.EXHAUSTED
        if is_worth_a_row:
            self.record(outcome)
        # The measurements of the significance gate, if it skipped the run.
        measured = self.details if outcome is Outcome.SKIPPED else {}
        self.log("compaction_finished", outcome=outcome.value, **measured)
        run_id = self.row.run_id if is_worth_a_row else None
        return record_of(
            CompactionResult, self.row, reason=self.reason, outcome=outcome, run_id=run_id, details=self.details
        )

    def compact(self, *, last_seq: int | None = None) -> Outcome:
        """Make leaf summaries, oldest first, then condensed ones, shallowest first.

        With `last_seq`, everything up to this message is summarized, also the fresh tail, and nothing after it.
        """
        if self.reason.is_automatic and self.policy.trigger_of(self.conversation.counters) is None:
            return Outcome.NOT_NEEDED
        if self.reason.is_automatic and self._is_insignificant():
            return Outcome.SKIPPED
        slots, policy = self.read_context(), self.policy
        if last_seq is not None:
            slots, policy = planner.up_to(slots, last_seq), replace(policy, fresh_tail_count=0)
        if not self.follow(leaf_and_condensed_steps(slots, policy)):
            return Outcome.STOPPED
        left = Counters(message_count=0, active_messages=self.messages, active_tokens=self.row.tokens_after)
        if self.reason.is_automatic and self.policy.trigger_of(left) is not None:
            return Outcome.EXHAUSTED
        return self.outcome_when_done

    def follow(self, steps: Steps) -> bool:
        """Make the summary of each step; return False if a limit of the run was reached."""
        slot: Slot | None = None
        while not self._is_enough:
            try:
                step = steps.send(slot)
            except StopIteration:
                return True
            if self.has_reached_limit:
                return False
            slot = self._summarize(step)
        return True

    @property
    def summaries(self) -> int:
        """The number of summaries made so far."""
        return self.row.leaf_summaries + self.row.condensed_summaries + self.row.redone_summaries

    @property
    def outcome_when_done(self) -> Outcome:
        """The outcome of a run that completed all of its work."""
        return Outcome.COMPACTED if self.summaries else Outcome.NOTHING_TO_DO

    @property
    def has_reached_limit(self) -> bool:
        return self.summaries >= self.policy.max_passes or time.monotonic() > self.deadline

    @property
    def _is_enough(self) -> bool:
        """Whether an automatic run has freed enough; a manual run does all it can."""
        return self.reason.is_automatic and self.policy.is_relieved(
            active_tokens=self.row.tokens_after, active_messages=self.messages
        )

    def _is_insignificant(self) -> bool:
        """Whether the significance gate skips the run; `details` then says why."""
        if not self.policy.significance_gate or self.conversation.active_tokens >= self.policy.hard_tokens:
            return False
        found = significance(
            read_turns(self.conversation_id),
            summaries=read_summary_texts(self.conversation_id),
            substantive_words=self.policy.substantive_words,
        )
        if not found.is_below(self.policy):
            return False
        self.details = {"significance": asdict(found)}
        return True

    @cached_property
    def withheld(self) -> frozenset[str]:
        """The items that no model may read; later quarantines make summaries outdated."""
        return withheld_items(self.conversation_id)

    def read_context(self) -> list[Slot]:
        """Read the slots of the context; the run's plan and counts refer to them."""
        slots = read_slots(self.conversation_id)
        self.start_from(tokens=planner.sum_tokens(slots), messages=sum(slot.is_raw for slot in slots))
        return slots

    def start_from(self, *, tokens: int, messages: int) -> None:
        """Set the counts of the context that the run has read."""
        self.row.tokens_before = self.row.tokens_after = tokens
        self.messages = messages

    def _summarize(self, step: Step) -> Slot | None:
        """Make and write a summary; return its slot, or None if it is not cheaper."""
        previous_id = step.previous.summary_id if step.previous else None
        sources = read_sources(step.chunk, withheld=self.withheld)
        made = self.make(sources, target_tokens=step.target_tokens, previous_id=previous_id)
        tokens = planner.sum_tokens(step.chunk)
        if made is None or made.item_tokens >= tokens:
            return None
        [ordinal] = self.write([made], instead_of_tokens=tokens)
        assert ordinal is not None
        return Slot(
            ordinal=ordinal, tokens=made.item_tokens, summary_id=made.summary.summary_id, depth=made.summary.depth
        )

    def make(
        self,
        sources: ChunkSources,
        *,
        target_tokens: int,
        previous_id: str | None = None,
        supersedes_id: str | None = None,
    ) -> Made | None:
        """Summarize the sources; None if no summary would be shorter than they are.

        No transaction may be open, as a model may be slow.
        """
        accepted = self.escalation.summarize(
            SummaryRequest(
                sources=sources.texts,
                target_tokens=target_tokens,
                count_tokens=self.store.tokens.count,
                depth=sources.depth,
                # Only a language model can leave out what the previous summary says already.
                previous=self._previous_text(previous_id) if self.escalation.models else "",
                instructions=self.policy.summary_instructions,
                target_factor=self.policy.target_factor,
                deadline=self.deadline,
            )
        )
        if accepted is None:
            return None
        summary = new_summary(
            sources,
            accepted,
            conversation_id=self.conversation_id,
            run_id=self.row.run_id,
            token_counter=self.store.tokens.name,
            supersedes_id=supersedes_id,
        )
        return Made(summary, sources, item_tokens=context_cost_of(self.store.tokens)(summary))

    def _previous_text(self, previous_id: str | None) -> str:
        return "" if previous_id is None or previous_id in self.withheld else text_of(previous_id)

    def write(self, all_made: Sequence[Made], *, instead_of_tokens: int) -> list[int | None]:
        """Write summaries, context, counters and the run's row, in one transaction.

        Only the last summary enters the context, where it replaces items of `instead_of_tokens` tokens. The summaries
        before it are its sources. Returns for each summary its ordinal in the context, or None.
        """
        before = copy(self.row), self.messages
        try:
            with transaction.atomic():
                ordinals = [
                    self.store.write_summary(
                        summary=made.summary,
                        message_ids=made.sources.message_ids,
                        source_ids=made.sources.summary_ids,
                        item_tokens=made.item_tokens if made is all_made[-1] else None,
                        mark=self._mark_of(made.summary),
                    )
                    for made in all_made
                ]
                if self.lease is not None:
                    # Every writer locks the conversation's row before the job's. Progress resets the job's attempts.
                    self.lease.renew(attempts=1)
                self.row.tokens_after += all_made[-1].item_tokens - instead_of_tokens
                for made in all_made:
                    self._count(made)
                self.record(Outcome.RUNNING)
        except BaseException:
            # The summaries were rolled back, so the run must not count them.
            self.row, self.messages = before
            raise
        for made in all_made:
            summary = made.summary
            observability.count_summary(summary)
            self.log("summary_created", summary_id=summary.summary_id, depth=summary.depth, summary_level=summary.level)
        return ordinals

    def _count(self, made: Made) -> None:
        if made.summary.supersedes_id is not None:
            self.row.redone_summaries += 1
        elif made.summary.kind is SummaryKind.LEAF:
            self.row.leaf_summaries += 1
        else:
            self.row.condensed_summaries += 1
        if made.summary.supersedes_id is None:
            self.messages -= len(made.sources.message_ids)

    def _mark_of(self, summary: NewSummary) -> NewPart:
        """Build the synthetic, ignored compaction part for the last source message."""
        return NewPart(
            part_type=PartType.COMPACTION,
            is_synthetic=True,
            is_ignored=True,
            compaction_auto=self.reason.is_automatic,
            metadata={"run_id": self.row.run_id, "summary_id": summary.summary_id},
        )

    def log(self, event: str, **more: object) -> None:
        logger.info(
            event,
            compaction_id=self.row.run_id,
            conversation_id=self.conversation_id,
            session_id=self.conversation.session_id,
            trigger_reason=self.reason.value,
            token_before=self.row.tokens_before,
            token_after=self.row.tokens_after,
            **more,
        )

    def record(self, outcome: Outcome) -> None:
        """Write the run's row, or update it."""
        self.row.outcome, self.row.details = outcome, self.details
        if outcome is not Outcome.RUNNING:
            self.row.finished_at = timezone.now()
            transaction.on_commit(partial(observability.count_ended_run, self.row))
        CompactionRun.objects.bulk_create(
            [self.row], update_conflicts=True, unique_fields=["run_id"], update_fields=_UPDATED
        )
        if outcome in (Outcome.EXHAUSTED, Outcome.SKIPPED):
            # Until the context has changed, another run would end in the same way. It may have changed during this run.
            seen = Conversation.objects.filter(pk=self.conversation_id, moves=self.conversation.moves)
            seen.update(rest_until_seq=self.conversation.next_seq - 1 + self.policy.fresh_tail_count)
