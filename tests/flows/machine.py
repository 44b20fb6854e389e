"""Room is made in a conversation, by workers that live and die, while people go on talking in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from compaction.background import jobs
from compaction.background.worker import CompactionWorker
from compaction.engine import CompactionEngine
from compaction.hosts.host_service import HostCompaction
from compaction.llm.configuration import ModelsPolicy
from compaction.models import CompactionJob, CompactionRun
from compaction.planning import planner
from compaction.plans.plan_store import CompactionPlans
from compaction.sources import read_slots
from compaction.types import CompactionResult, JobState, Outcome, Reason
from conversations.errors import Conflict
from conversations.models import ContextItem, Summary
from conversations.work.queue import Lease, LeaseLost
from tests.factories import a_store
from tests.flows import promises
from tests.flows.edges import Fuse, Killed, Mood, dying, engine_with
from tests.flows.talk import an_opening
from tests.flows.talk_machine import Talk
from tests.statements import execute


class Conversation(Talk):
    """Compactions, redos, plans, flushes and deaths, between the appends, reads and forbidden writes."""

    def __init__(self) -> None:
        super().__init__()
        self.plans: list[str] = []
        # What workers held that have died, or seemed to.
        self.abandoned: list[Lease[CompactionJob]] = []

    # --- room is made

    @property
    def engine(self) -> CompactionEngine:
        return engine_with(self.model)

    @rule(reason=st.sampled_from([Reason.MANUAL, Reason.THRESHOLD]), most=st.sampled_from([1, 2, 2000]))
    def compact(self, reason: Reason, most: int) -> None:
        engine = self.engine
        engine = replace(engine, policy=replace(engine.policy, max_passes=most))
        result = self._room_made(lambda: engine.compact(conversation_id=self.conversation_id, reason=reason))
        assert result.tokens_after <= result.tokens_before
        assert result.leaf_summaries + result.condensed_summaries <= most

    @rule()
    def redo(self) -> None:
        result = self._room_made(lambda: self.engine.redo(conversation_id=self.conversation_id))
        if self.model.mood is Mood.GOOD and result.outcome is not Outcome.DISABLED:
            assert result.outcome in (Outcome.COMPACTED, Outcome.NOTHING_TO_DO)
            assert not ContextItem.objects.filter(
                conversation_id=self.conversation_id, summary__is_degraded=True
            ).exists()
        if self.model.mood is Mood.AWAY:
            assert result.redone_summaries == 0

    @rule(reference=st.sampled_from(["host-1", "host-2"]))
    def flush(self, reference: str) -> None:
        hosts = HostCompaction(engine=self.engine)
        newest = len(self.said)
        flushed = hosts.flush(conversation_id=self.conversation_id, host_reference=reference)
        assert not flushed.created or flushed.boundary.last_seq == newest
        assert hosts.verify_coverage(conversation_id=self.conversation_id, host_reference=reference).is_complete

    @rule(reference=st.sampled_from(["host-1", "host-3"]))
    def record_boundary(self, reference: str) -> None:
        hosts = HostCompaction(engine=self.engine)
        recorded = hosts.record_boundary(conversation_id=self.conversation_id, host_reference=reference)
        assert recorded == hosts.record_boundary(conversation_id=self.conversation_id, host_reference=reference)

    @rule()
    def plan(self) -> None:
        plan = self._plans.plan(conversation_id=self.conversation_id)
        self.plans.append(plan.plan_id)

    @rule()
    def plan_and_execute(self) -> None:
        plans = self._plans
        plan = plans.plan(conversation_id=self.conversation_id)
        self.plans.append(plan.plan_id)
        result = self._room_made(lambda: plans.execute_plan(plan_id=plan.plan_id))
        made = {each["step"]: each["summary_id"] for each in result.details.get("steps_made", ())}
        skipped = {each["step"] for each in result.details.get("steps_skipped", ())}
        assert made.keys() | skipped == {step.number for step in plan.steps}
        for step in plan.steps:
            if step.number in made:
                summary = Summary.objects.get(pk=made[step.number])
                assert (summary.first_seq, summary.last_seq, summary.depth, summary.kind) == (
                    step.first_seq,
                    step.last_seq,
                    step.depth,
                    step.kind,
                )

    @precondition(lambda self: self.plans)
    @rule(data=st.data())
    def execute_an_old_plan(self, data: st.DataObject) -> None:
        plan_id = data.draw(st.sampled_from(self.plans))
        before = Summary.objects.count()
        try:
            self._room_made(lambda: self._plans.execute_plan(plan_id=plan_id))
        except Conflict as conflict:
            assert conflict.code in ("plan_outdated", "plan_executed")
            assert Summary.objects.count() == before

    @property
    def _plans(self) -> CompactionPlans:
        return CompactionPlans(engine=self.engine, models=ModelsPolicy.from_settings())

    def _room_made(self, work: Callable[[], CompactionResult]) -> CompactionResult:
        """What a run comes back with: the figures are true, and what was protected before is still raw."""
        before = a_store().get_conversation(conversation_id=self.conversation_id).counters
        slots = read_slots(self.conversation_id)
        protected = planner.fresh_tail(slots, self.engine.policy.overridden({"fresh_tail_count": self.tail}))
        summaries = Summary.objects.count()
        result = work()
        after = a_store().get_conversation(conversation_id=self.conversation_id).counters
        assert (result.tokens_before, result.tokens_after) == (before.active_tokens, after.active_tokens)
        made = result.leaf_summaries + result.condensed_summaries + result.redone_summaries
        assert Summary.objects.count() == summaries + made
        assert protected.system | protected.tail | protected.pinned <= set(promises.raw_seqs(self.conversation_id))
        return result

    # --- workers live and die

    @rule(reason=st.sampled_from([Reason.MANUAL, Reason.REDO]))
    def request(self, reason: Reason) -> None:
        self.engine.request(conversation_id=self.conversation_id, reason=reason)

    @rule()
    def sweep(self) -> None:
        CompactionWorker(engine=self.engine).sweep()

    @rule()
    def work(self) -> None:
        due = list(jobs.QUEUE.due())
        # What is due may have to wait for another job of the conversation; what is not due waits in any case.
        if CompactionWorker(engine=self.engine).work():
            assert due

    @rule(messages=st.integers(4, 10))
    def a_model_was_away(self, messages: int) -> None:
        self._appended(an_opening(messages))
        self.model.mood = Mood.AWAY
        self._room_made(lambda: self.engine.compact(conversation_id=self.conversation_id))
        self.model.mood = Mood.GOOD

    @rule(
        messages=st.integers(1, 10),
        survives=st.integers(0, 3),
        in_the_middle=st.booleans(),
        has_last_words=st.booleans(),
        reason=st.sampled_from([Reason.MANUAL, Reason.REDO]),
    )
    def a_worker_dies(
        self, messages: int, survives: int, in_the_middle: bool, has_last_words: bool, reason: Reason
    ) -> None:
        self._appended(an_opening(messages))
        job = self.engine.request(conversation_id=self.conversation_id, reason=reason)
        claim = jobs.QUEUE.claim(lease_seconds=60, row_id=job.job_id)
        if claim is None:
            return
        fuse = Fuse(survives, in_the_middle)
        try:
            self._carry_out(dying(self.engine, fuse), claim)
        except Killed:
            self.abandoned.append(claim)
            if not has_last_words:
                # A process that is killed outright leaves the row as its last write has left it.
                CompactionRun.objects.filter(job_id=claim.row.job_id, outcome=Outcome.FAILED).update(
                    outcome=Outcome.RUNNING, finished_at=None
                )
        else:
            claim.finish()

    @rule()
    def other_workers_take_over(self) -> None:
        """Once the leases of the dead have run out, what they held is done, like everything else that waits."""
        execute("UPDATE compaction_jobs SET leased_until = clock_timestamp() - interval '1 s' WHERE state = 'leased'")
        worker = CompactionWorker(engine=self.engine)
        while worker.work():
            pass
        assert not jobs.QUEUE.due().exists()
        assert not CompactionJob.objects.exclude(state=JobState.DONE).exists()
        if self.engine.policy.overridden(self.own_settings).enabled:
            assert not CompactionRun.objects.filter(outcome=Outcome.RUNNING, job__isnull=False).exists()

    @precondition(lambda self: self.abandoned)
    @rule(data=st.data())
    def a_worker_that_was_thought_dead_comes_back(self, data: st.DataObject) -> None:
        claim = data.draw(st.sampled_from(self.abandoned))
        is_still_its_own = CompactionJob.objects.filter(
            pk=claim.row.job_id, fence=claim.fence, state=JobState.LEASED
        ).exists()
        before = Summary.objects.count()
        try:
            self._carry_out(self.engine, claim)
        except LeaseLost:
            assert not is_still_its_own
        if not is_still_its_own:
            assert Summary.objects.count() == before

    def _carry_out(self, engine: CompactionEngine, claim: Lease[CompactionJob]) -> CompactionResult:
        if claim.row.reason == Reason.REDO:
            return engine.redo(conversation_id=self.conversation_id, lease=claim)
        return engine.compact(conversation_id=self.conversation_id, reason=Reason(claim.row.reason), lease=claim)
