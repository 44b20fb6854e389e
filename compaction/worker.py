"""A worker's side of the jobs: claim one, do it, and leave it done, due again, or set aside."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Q, QuerySet

from compaction import jobs, planner
from compaction.engine import CompactionEngine
from compaction.jobs import LeaseLost
from compaction.models import CompactionJob
from compaction.pressure import wants_compaction
from compaction.signals import job_due
from compaction.types import JobState, Outcome, Reason
from conversations.errors import ConversationBusy, NotFound
from conversations.models import Conversation

logger = logging.getLogger(__name__)

BUSY_DELAY_SECONDS = 2.0
FIRST_DELAY_SECONDS = 2.0
LONGEST_DELAY_SECONDS = 300.0


@dataclass(frozen=True)
class CompactionWorker:
    engine: CompactionEngine

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
        # Should this process die, the lease runs out and this wake-up finds the job.
        job_due.send(sender=None, job_id=claim.job_id, delay_seconds=claim.lease_seconds + 1.0)
        try:
            result = self.engine.compact(conversation_id=claim.conversation_id, reason=claim.reason, claim=claim)
        except ConversationBusy:
            claim.put_back(error=ConversationBusy.code, delay_seconds=BUSY_DELAY_SECONDS)
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
                got_on = bool(result.leaf_summaries + result.condensed_summaries)
                claim.put_back(error="", delay_seconds=0.0, got_on=got_on)
            else:
                claim.finish()
        return True

    def sweep(self) -> None:
        """Wake a worker for every job that is due, and ask for one where there is pressure and no job.

        What a lost wake-up, a crash or a changed setting has left behind is found here.
        """
        for job_id in jobs.due():
            job_due.send(sender=None, job_id=job_id, delay_seconds=0.0)
        for conversation in self._maybe_pressed().iterator(chunk_size=1000):
            if wants_compaction(
                conversation_id=conversation.conversation_id,
                counters=conversation.counters,
                overrides=conversation.overrides,
                policy=self.engine.policy,
            ):
                jobs.request(conversation_id=conversation.conversation_id, reason=Reason.THRESHOLD)

    def _maybe_pressed(self) -> QuerySet[Conversation]:
        """Conversations without an open job whose counters, or whose own settings, call for a closer look."""
        policy = self.engine.policy
        pressed = (
            Q(active_tokens__gte=planner.threshold_tokens(policy))
            | Q(active_messages__gt=policy.max_active_messages)
            | ~Q(overrides={})
        )
        open_jobs = CompactionJob.objects.filter(
            conversation_id=OuterRef("conversation_id"), state__in=[JobState.QUEUED, JobState.LEASED]
        )
        return Conversation.objects.filter(pressed, ~Exists(open_jobs))
