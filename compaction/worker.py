"""A worker's side of the jobs: claim one, do it, and leave it done, due again, or set aside."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

import structlog
from django.db.models import Exists, Q, QuerySet
from django.utils import timezone

from compaction import jobs
from compaction.engine import CompactionEngine
from compaction.jobs import Claim, LeaseLost
from compaction.llm.configuration import chain_of
from compaction.llm.guards import callable_models
from compaction.planning import planner
from compaction.planning.pressure import wants_compaction
from compaction.redo import waiting_for_a_model
from compaction.signals import job_due
from compaction.types import CompactionResult, Outcome, Reason
from conversations.errors import ConversationBusy, NotFound
from conversations.models import Conversation

logger = logging.getLogger(__name__)

BUSY_DELAY_SECONDS = 2.0
FIRST_DELAY_SECONDS = 2.0
LONGEST_DELAY_SECONDS = 300.0


@dataclass(frozen=True)
class CompactionWorker:
    engine: CompactionEngine
    # The clock of the models' circuit breakers.
    now: Callable[[], datetime] = timezone.now

    @classmethod
    def from_settings(cls) -> CompactionWorker:
        return cls(engine=CompactionEngine.from_settings())

    def work(self, *, job_id: int | None = None) -> bool:
        """Do the given job, or the next that is due; false if there was none to be had.

        A job that fails stays a row, with the kind of its error, and becomes due again after a growing pause.
        """
        claim = jobs.claim(lease_seconds=self.engine.policy.job_lease_seconds, job_id=job_id)
        if claim is None:
            if job_id is not None:
                jobs.watch(job_id)
            return False
        if claim.attempts > jobs.MAX_ATTEMPTS:
            # Each of those who had it was gone before it could say why.
            claim.put_back(error="worker_lost", delay_seconds=0.0)
            return True
        # Should this process die, the lease runs out and this wake-up finds the job.
        job_due.send(sender=None, job_id=claim.job_id, delay_seconds=claim.lease_seconds + 1.0)
        try:
            # Whatever is logged on the way belongs to the request that asked for it.
            with (
                structlog.contextvars.bound_contextvars(job_id=claim.job_id, request_id=claim.request_id),
                claim.kept(),
            ):
                result = self._carry_out(claim)
        except ConversationBusy:
            # Nothing was tried, so it is no attempt.
            waiting = replace(claim, attempts=claim.attempts - 1)
            waiting.put_back(error=ConversationBusy.code, delay_seconds=BUSY_DELAY_SECONDS)
        except LeaseLost:
            logger.warning("compaction_lease_lost", extra={"job_id": claim.job_id})
        except NotFound:
            claim.finish()
        except Exception as failure:
            # The kind and not the words: an error's text may quote a message.
            delay = min(LONGEST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2**claim.attempts)
            claim.put_back(error=type(failure).__name__, delay_seconds=delay)
            raise
        else:
            if result.outcome is Outcome.STOPPED:
                got_on = bool(result.leaf_summaries + result.condensed_summaries + result.redone_summaries)
                claim.put_back(error="", delay_seconds=0.0, got_on=got_on)
            else:
                claim.finish()
        return True

    def _carry_out(self, claim: Claim) -> CompactionResult:
        if claim.reason in (Reason.REDO, Reason.REDO_ALL):
            return self.engine.redo(conversation_id=claim.conversation_id, claim=claim)
        return self.engine.compact(conversation_id=claim.conversation_id, reason=claim.reason, claim=claim)

    def sweep(self) -> None:
        """Wake a worker for every job that is due, and ask for one where there is pressure, or a redo, and no job.

        What a lost wake-up, a crash, a changed setting or a model that was away has left behind is found here.
        """
        for job_id in jobs.due():
            job_due.send(sender=None, job_id=job_id, delay_seconds=0.0)
        for conversation in self._maybe_pressed().iterator(chunk_size=1000):
            if wants_compaction(
                counters=conversation.counters, overrides=conversation.overrides, policy=self.engine.policy
            ):
                jobs.request(conversation_id=conversation.conversation_id, reason=Reason.THRESHOLD)
        for conversation in self._to_redo():
            jobs.request(conversation_id=conversation.conversation_id, reason=Reason.REDO)

    def _to_redo(self) -> Iterator[Conversation]:
        """Conversations with summaries that wait for a model, where one may be asked again.

        Of those whose models have only just been left alone for long enough, one: it finds out for the others, which
        would all be turned away meanwhile. When somebody has answered, the next sweep finds the rest.
        """
        is_being_found_out = jobs.is_any_open(Reason.REDO)
        callable_by_chain: dict[str, dict[str, bool]] = {}
        asked: set[str] = set()
        for conversation in waiting_for_a_model(self.now()):
            policy = self.engine.policy.overridden(conversation.overrides)
            if policy.summarizer not in callable_by_chain:
                callable_by_chain[policy.summarizer] = callable_models(chain_of(policy.summarizer), now=self.now)
            models = callable_by_chain[policy.summarizer]
            if not models or not policy.enabled or policy.autocompact_disabled:
                continue
            if not any(models.values()):
                if is_being_found_out or not asked.isdisjoint(models):
                    continue
                asked.update(models)
            yield conversation

    def _maybe_pressed(self) -> QuerySet[Conversation]:
        """Conversations without an open job whose counters, or whose own settings, call for a closer look."""
        policy = self.engine.policy
        pressed = (
            Q(active_tokens__gte=planner.threshold_tokens(policy))
            | Q(active_messages__gt=policy.max_active_messages)
            | ~Q(overrides={})
        )
        return Conversation.objects.filter(pressed, ~Exists(jobs.open_jobs()))
