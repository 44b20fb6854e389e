"""Compact: replace the old part of an active context with summaries.

A run takes the lock, reads the context, and plans. Then it summarizes each chunk with no transaction open, and writes
the summary in one transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from django.db import transaction

from compaction.background import jobs
from compaction.models import CompactionJob, CompactionRun
from compaction.policy import CompactionPolicy
from compaction.redo import redo
from compaction.run import Run, abandon_runs, compaction_lock
from compaction.summarizing.escalation import Escalation
from compaction.summarizing.summarizer_chain import escalation_of
from compaction.types import CompactionResult, CompactionStatus, JobRecord, Outcome, Reason, RunRecord
from conversations.errors import ConversationBusy, Invalid
from conversations.models import Conversation
from conversations.scope import EVERYTHING, Scope
from conversations.store.conversations import ConversationStore
from conversations.store.pages import newest_first
from conversations.work.queue import Lease


@dataclass(frozen=True)
class CompactionEngine:
    """Decides whether a conversation needs compaction, and compacts it."""

    store: ConversationStore
    policy: CompactionPolicy
    escalation: Escalation

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> CompactionEngine:
        store = ConversationStore.from_settings(scope)
        policy = CompactionPolicy.from_settings()
        return cls(store, policy, escalation_of(policy.summarizer))

    def evaluate(self, *, conversation_id: int) -> CompactionStatus:
        """Report whether a conversation needs compaction, and its last run."""
        conversation = self.store.scope.conversation(conversation_id)
        decision = jobs.decide_on_one(conversation, self.policy)
        run = next(iter(self.list_runs(conversation_id=conversation_id, limit=1)), None)
        return CompactionStatus(**vars(decision), run_id=None if run is None else run.run_id, run=run)

    def lower_budget(self, conversation: Conversation, tokens: int) -> None:
        """Lower the conversation's token budget, and compact if it is reached.

        A client must not undo what an operator has set, so a budget that is not below the present one is ignored. So is
        one that no compaction can satisfy.
        """
        if tokens >= self.policy.overridden(conversation.overrides).model_token_budget:
            return
        overrides = conversation.overrides | {"model_token_budget": tokens}
        with suppress(Invalid):
            self.store.configure_conversation(conversation_id=conversation.pk, overrides=overrides)
            if self.policy.overridden(overrides).needs_compaction(conversation.counters):
                jobs.request(conversation_id=conversation.pk, reason=Reason.THRESHOLD)

    def request(self, *, conversation_id: int, reason: Reason = Reason.MANUAL) -> JobRecord:
        """Queue a background compaction, or return the job that is queued already."""
        self.store.scope.conversation(conversation_id)
        job_id = jobs.request(conversation_id=conversation_id, reason=Reason(reason))
        return CompactionJob.objects.select_related("conversation").get(pk=job_id).as_record()

    def backfill(self, *, conversation_id: int | None = None) -> list[JobRecord]:
        """Queue a compaction where the last run skipped messages as not worth one.

        It checks one conversation, or all of them, and returns the queued jobs.
        """
        runs = self.store.scope.filter_rows(CompactionRun.objects.all(), conversation_id=conversation_id)
        latest = runs.order_by("conversation_id", "-started_at").distinct("conversation_id")
        skipped = [run.conversation_id for run in latest if run.outcome == Outcome.SKIPPED]
        return [self.request(conversation_id=each) for each in skipped]

    def request_redo(self, *, conversation_id: int) -> JobRecord:
        """Queue a redo of all degraded summaries, including those with rejected texts.

        Raises ConversationBusy, retryable, while a compaction of the conversation is queued.
        """
        job = self.request(conversation_id=conversation_id, reason=Reason.REDO_ALL)
        if job.reason is not Reason.REDO_ALL:
            raise ConversationBusy(f"Job {job.job_id}, a compaction, is queued: request the redo when it has ended.")
        return job

    def get_job(self, *, job_id: int) -> JobRecord:
        """Return one background compaction job and its runs; raises NotFound."""
        jobs_of_all = CompactionJob.objects.select_related("conversation")
        return self.store.scope.find(jobs_of_all, "job", job_id, pk=job_id).as_record()

    def get_run(self, *, run_id: str) -> RunRecord:
        """Return one compaction run; raises NotFound."""
        return self.store.scope.find(CompactionRun.objects.with_record_fields(), "run", run_id, pk=run_id).as_record()

    def list_runs(
        self,
        *,
        conversation_id: int | None = None,
        outcome: Outcome | str | None = None,
        reason: Reason | str | None = None,
        before_run: str | None = None,
        limit: int = 20,
    ) -> list[RunRecord]:
        """List compaction runs, newest first. Filter by conversation, outcome, reason.

        Raises NotFound if there is no such conversation.
        """
        runs = self.store.scope.filter_rows(
            CompactionRun.objects.with_record_fields(), conversation_id=conversation_id, outcome=outcome, reason=reason
        )
        newest = newest_first(runs, before_run, lambda id: self.get_run(run_id=id), field="started_at")
        return [run.as_record() for run in newest[:limit]]

    def compact(
        self, *, conversation_id: int, reason: Reason = Reason.MANUAL, lease: Lease[CompactionJob] | None = None
    ) -> CompactionResult:
        """Summarize older messages of one conversation, and report what was done.

        A manual run summarizes everything outside the fresh tail (the newest turns). An automatic run summarizes just
        enough to get below the threshold. Summaries written before a failure stay; the next run continues from there.
        Raises NotFound; ConversationBusy, retryable, while another compaction of the conversation is in progress.
        """
        return self.run(conversation_id=conversation_id, reason=Reason(reason), work=Run.compact, lease=lease)

    def redo(self, *, conversation_id: int, lease: Lease[CompactionJob] | None = None) -> CompactionResult:
        """Regenerate degraded summaries in the context, with a language model.

        The new summaries supersede the old ones, which stay in the lineage. Raises ConversationBusy as `compact` does.
        """
        return self.run(conversation_id=conversation_id, reason=Reason.REDO, work=redo, lease=lease)

    def run(
        self,
        *,
        conversation_id: int,
        reason: Reason,
        work: Callable[[Run], Outcome],
        lease: Lease[CompactionJob] | None = None,
    ) -> CompactionResult:
        """Call `work` with a new run, under the conversation's lock.

        If compaction is switched off, `work` is not called and the outcome is `disabled`.
        """
        conversation = self.store.scope.conversation(conversation_id)
        policy = self.policy.overridden(conversation.overrides)
        if not policy.enabled or (policy.autocompact_disabled and reason.is_automatic):
            tokens = conversation.active_tokens
            return CompactionResult(conversation_id, reason, Outcome.DISABLED, tokens, tokens)
        # A conversation may override the chain of summarizers.
        has_own = policy.summarizer != self.policy.summarizer
        escalation = escalation_of(policy.summarizer) if has_own else self.escalation
        with compaction_lock(conversation_id):
            abandon_runs(conversation_id)
            with transaction.atomic():
                # Quarantines lock the row, too: the run sees them, or they are later than its start.
                conversation = self.store.scope.conversation(conversation_id, locked=True)
                run = Run(self.store, escalation, policy, conversation, reason, lease)
            return run.execute(work)
