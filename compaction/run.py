"""One execution of compaction under the conversation's lock: has texts made, writes them, and keeps its own record."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import structlog
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from compaction import observability
from compaction.jobs import Claim
from compaction.planning import planner
from compaction.planning.active_slots import Context
from compaction.planning.planner import Slot
from compaction.policy import CompactionPolicy
from compaction.sources import read_slots, read_sources
from compaction.summarizing.escalation import Escalation
from compaction.summarizing.summary_factory import Made, Maker
from compaction.types import CompactionResult, Outcome, Reason
from conversations.models import Conversation
from conversations.sql import first_row, rows
from conversations.store.conversations import ConversationStore
from conversations.types import NewPart, NewSummary, PartType, SummaryKind

logger = structlog.get_logger(__name__)

_RECORD = """
    INSERT INTO compaction_runs (run_id, conversation_id, job_id, reason, outcome, started_at, finished_at,
                                 tokens_before, tokens_after, leaf_summaries, condensed_summaries, redone_summaries,
                                 details)
    VALUES (%(run_id)s, %(conversation_id)s, %(job_id)s, %(reason)s, %(outcome)s, %(started_at)s, %(finished_at)s,
            %(tokens_before)s, %(tokens_after)s, %(leaf)s, %(condensed)s, %(redone)s, %(details)s)
    ON CONFLICT (run_id) DO UPDATE SET
        outcome = excluded.outcome, finished_at = excluded.finished_at, tokens_after = excluded.tokens_after,
        leaf_summaries = excluded.leaf_summaries, condensed_summaries = excluded.condensed_summaries,
        redone_summaries = excluded.redone_summaries, details = excluded.details
    RETURNING run_id
"""

_ABANDON = """
    UPDATE compaction_runs SET outcome = 'abandoned', finished_at = clock_timestamp()
    WHERE conversation_id = %(conversation_id)s AND outcome = 'running'
    RETURNING reason
"""


def abandon_runs(conversation_id: int) -> None:
    """Close the records of runs whose worker is gone: who calls this holds the lock, so no run is at work.

    What they wrote is complete and stays.
    """
    for (reason,) in rows(_ABANDON, {"conversation_id": conversation_id}):
        observability.abandoned(reason)


@dataclass(frozen=True)
class Progress:
    """What a run has come to so far; a failed write leaves the run with the one it had before."""

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


class Run:
    """A run in progress. What it has written is final; what it knows of the context is its own and up to date.

    `tokens_before` is what the context cost when the run read it, and `progress.tokens` what that same context costs
    with the run's summaries in it. Messages that are appended meanwhile are in neither, so the difference is what the
    run took out, and neither is ever negative.
    """

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
        self.policy = policy
        self.conversation_id = conversation.conversation_id
        self.session_id = conversation.session_id
        self.reason = reason
        self.claim = claim
        self.run_id = f"run_{secrets.token_hex(8)}"
        self.started_at = timezone.now()
        self.deadline = time.monotonic() + policy.run_deadline_seconds
        self.decision = planner.decide(
            conversation_id=conversation.conversation_id, counters=conversation.counters, policy=policy
        )
        self.is_counted = False
        # The counters stand for a run that ends without reading the context.
        self.tokens_before = conversation.active_tokens
        self.progress = Progress(tokens=conversation.active_tokens, messages=conversation.active_messages)
        self.maker = Maker(
            escalation=escalation,
            tokens=store.tokens,
            policy=policy,
            conversation_id=conversation.conversation_id,
            run_id=self.run_id,
            deadline=self.deadline,
        )

    def read_context(self) -> Context:
        """Read the slots that the run plans on; its figures are about these very slots."""
        slots = read_slots(self.conversation_id)
        self.starts_from(tokens=slots.tokens, messages=slots.messages)
        return slots

    def starts_from(self, *, tokens: int, messages: int) -> None:
        """Take what the context cost when it was read as the figures that the run starts from."""
        self.tokens_before = tokens
        self.progress = replace(self.progress, tokens=tokens, messages=messages)

    def execute(self, passes: Callable[[Run], Outcome]) -> CompactionResult:
        """Do the passes, which say how it ended, and leave a record of it, of a failure too."""
        try:
            outcome = passes(self)
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

    @property
    def is_out_of_bounds(self) -> bool:
        return self.progress.summaries >= self.policy.max_passes or time.monotonic() > self.deadline

    def summarize(self, chunk: Sequence[Slot], target_tokens: int, *, previous: Slot | None = None) -> Slot | None:
        """The slot that now stands for the chunk, or None if a summary would not have been cheaper."""
        made = self.maker.make(
            read_sources(chunk), target_tokens=target_tokens, previous_id=previous.summary_id if previous else None
        )
        if made is None or made.item_tokens >= planner.sum_tokens(chunk):
            return None
        saved = planner.sum_tokens(chunk) - made.item_tokens
        after = self.progress.with_summary(made.summary.kind, saved=saved, messages=len(made.message_ids))
        [ordinal] = self.write([made], after)
        assert ordinal is not None
        return Slot(
            ordinal=ordinal,
            tokens=made.item_tokens,
            summary_id=made.summary.summary_id,
            depth=made.summary.depth,
        )

    def write(self, all_made: Sequence[Made], after: Progress) -> list[int | None]:
        """Summaries, links, context, parts, counters and the run's row: together or not at all.

        The last one is shown in the context; those before it are what it was made from.
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
                if self.claim is not None:
                    # After the conversation's row, which every writer takes first.
                    self.claim.renew(got_on=True)
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
        """The compaction part for the last source message: synthetic, ignored, and never part of what was said."""
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
            session_id=self.session_id,
            trigger_reason=self.reason.value,
            token_before=self.tokens_before,
            token_after=self.progress.tokens,
            **more,
        )

    def _count(self, outcome: Outcome) -> None:
        observability.ended(
            reason=self.reason,
            outcome=outcome,
            seconds=(timezone.now() - self.started_at).total_seconds(),
            saved=self.tokens_before - self.progress.tokens,
        )

    def record(self, outcome: Outcome) -> None:
        """Write the run's row, or bring it up to date."""
        first_row(
            _RECORD,
            {
                "run_id": self.run_id,
                "conversation_id": self.conversation_id,
                "job_id": self.claim.job_id if self.claim is not None else None,
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
            # Asked again before anything has changed, it would find nothing again.
            Conversation.objects.filter(pk=self.conversation_id).update(
                rest_until_seq=F("next_seq") - 1 + self.policy.fresh_tail_count
            )
