"""The compaction worker: does one job at a time, and sweeps for missed work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

import structlog
from django.utils import timezone

from compaction.background import jobs
from compaction.engine import CompactionEngine
from compaction.llm.configuration import chain_of
from compaction.llm.guards import callable_models, limit_waits
from compaction.models import CompactionJob
from compaction.redo import waiting_for_a_model
from compaction.sources import conversations_to_redo
from compaction.types import CompactionResult, Outcome, Reason
from conversations.errors import ConversationBusy, NotFound
from conversations.models import Conversation
from conversations.work.queue import BUSY_DELAY_SECONDS, MOST_WOKEN_AT_ONCE, Lease


@dataclass(frozen=True)
class CompactionWorker:
    engine: CompactionEngine
    # The clock of the models' circuit breakers.
    now: Callable[[], datetime] = timezone.now

    @classmethod
    def from_settings(cls) -> CompactionWorker:
        return cls(engine=CompactionEngine.from_settings())

    def work(self, *, job_id: int | None = None) -> bool:
        """Do the given job, or the next due one; return False if none can be claimed.

        A failed job records the type of its error, and is retried after a growing backoff.
        """
        lease = jobs.QUEUE.claim(lease_seconds=self.engine.policy.job_lease_seconds, row_id=job_id)
        if lease is None:
            return False
        # Log lines carry the id of the request that led to the job.
        request = {"job_id": lease.row.job_id, "request_id": lease.row.request_id}
        with structlog.contextvars.bound_contextvars(**request), lease.attempt():
            self._carry_out(lease)
        return True

    def _carry_out(self, lease: Lease[CompactionJob]) -> None:
        try:
            with lease.heartbeat():
                result = self._run(lease)
        except ConversationBusy as busy:
            # Another process holds the lock and nothing was tried, so this is not counted as an attempt.
            lease.release(attempts=lease.attempts - 1, error=busy.code, delay_seconds=BUSY_DELAY_SECONDS)
        except NotFound:
            lease.finish()
        else:
            if result.outcome is not Outcome.STOPPED:
                lease.finish()
            elif result.leaf_summaries + result.condensed_summaries + result.redone_summaries:
                lease.release()
            else:
                lease.retry(error="", delay_seconds=0.0)

    def _run(self, lease: Lease[CompactionJob]) -> CompactionResult:
        conversation_id, reason = lease.row.conversation_id, Reason(lease.row.reason)
        if reason in (Reason.REDO, Reason.REDO_ALL):
            return self.engine.redo(conversation_id=conversation_id, lease=lease)
        return self.engine.compact(conversation_id=conversation_id, reason=reason, lease=lease)

    def sweep(self) -> None:
        """Wake workers for due jobs; request jobs for pressure and for redos.

        This finds work that remained after lost wake-ups, crashes, changed settings and unavailable models.
        """
        limit_waits(now=self.now())
        jobs.QUEUE.wake_due()
        for conversation in self._under_pressure():
            jobs.request(conversation_id=conversation.conversation_id, reason=Reason.MAINTENANCE)
        for conversation_id in conversations_to_redo(limit=MOST_WOKEN_AT_ONCE):
            jobs.request(conversation_id=conversation_id, reason=Reason.REDO)
        for conversation in self._to_redo():
            jobs.request(conversation_id=conversation.conversation_id, reason=Reason.REDO)

    def _to_redo(self) -> Iterator[Conversation]:
        """Yield conversations whose summaries wait for a model that can be called now.

        While a model's circuit breaker is half-open, only one conversation is yielded, to probe it; calls for others
        would be refused. Once the model answers, the next sweep yields the rest.
        """
        is_probing = jobs.open_jobs().filter(reason=Reason.REDO).exists()
        callable_by_chain: dict[str, dict[str, bool]] = {}
        probed: set[str] = set()
        for conversation in waiting_for_a_model(self.now()):
            policy = self.engine.policy.overridden(conversation.overrides)
            if policy.summarizer not in callable_by_chain:
                callable_by_chain[policy.summarizer] = callable_models(chain_of(policy.summarizer), now=self.now)
            models = callable_by_chain[policy.summarizer]
            if not models or not policy.enabled or policy.autocompact_disabled:
                continue
            if not any(models.values()):
                if is_probing or not probed.isdisjoint(models):
                    continue
                probed.update(models)
            yield conversation

    def _under_pressure(self) -> Iterator[Conversation]:
        """Yield conversations without an open job that need automatic compaction."""
        policy = self.engine.policy
        idle = jobs.maybe_under_pressure(policy).filter(~jobs.has_open_job())
        for conversation in idle.iterator(chunk_size=1000):
            if policy.overridden(conversation.overrides).needs_compaction(conversation.counters):
                yield conversation
