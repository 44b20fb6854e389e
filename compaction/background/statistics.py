"""Statistics of a workspace: tokens saved, pressure, jobs, runs by the hour.

Each value comes from one statement over counters, open jobs, or the runs of a few days. No message is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from compaction.background.jobs import decide, last_outcome_of_resting, maybe_under_pressure
from compaction.models import CompactionJob
from compaction.policy import CompactionPolicy
from compaction.types import Activity, JobRecord, JobState, LevelShare, Outcome, PressedConversation, RunsInAnHour
from conversations import sql
from conversations.models.columns import record_of
from conversations.scope import EVERYTHING, Scope
from conversations.types import Level

# Maximum number of conversations that are checked, one by one, for pressure. The others are not counted.
MOST_CHECKED = 1_000
MOST_LISTED = 5

_STATEMENTS = sql.load("compaction/statistics.sql")


@dataclass(frozen=True)
class CompactionActivity:
    """Reports on one workspace or, for the site administrator's tools, on all."""

    policy: CompactionPolicy
    scope: Scope = EVERYTHING

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> CompactionActivity:
        return cls(policy=CompactionPolicy.from_settings(), scope=scope)

    def activity(self, *, hours: int = 24) -> Activity:
        """Show tokens saved, full contexts and jobs; runs and levels of the last hours."""
        # Start on the hour, so that the first hour is as long as the others.
        since = timezone.now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=hours - 1)
        values = {"workspace_id": self.scope.workspace_id, "since": since}
        totals = sql.first_row(_STATEMENTS["activity_totals"], values) or {}
        by_level = {level: totals.pop(level.value) for level in Level}
        made, degraded = sum(by_level.values()), totals["degraded_summaries"]
        pressed = self._under_pressure()
        return Activity(
            since=since,
            **totals,
            under_pressure=len(pressed),
            pressed=tuple(pressed[:MOST_LISTED]),
            runs=tuple(
                RunsInAnHour(hour, Outcome(outcome), count, freed)
                for hour, outcome, count, freed in sql.rows(_STATEMENTS["runs_by_hour"], values)
            ),
            summaries=made,
            levels=tuple(
                LevelShare(level, count, round(count / made, 4)) for level, count in by_level.items() if count
            ),
            degraded_share=round(degraded / made, 4) if made else None,
        )

    def list_jobs(
        self,
        *,
        conversation_id: int | None = None,
        state: JobState | str | None = None,
        before_id: int | None = None,
        limit: int = 50,
    ) -> list[JobRecord]:
        """List compaction jobs, newest first. Filter by conversation and state.

        Raises NotFound if there is no such conversation.
        """
        jobs = CompactionJob.objects.select_related("conversation").prefetch_related("runs")
        jobs = self.scope.filter_rows(jobs, conversation_id=conversation_id, state=state, job_id__lt=before_id)
        return [job.as_record() for job in jobs.order_by("-job_id")[:limit]]

    def _under_pressure(self) -> list[PressedConversation]:
        """Return the conversations under pressure, the fullest first.

        Conversations that the significance gate skipped are left out: they are not compacted for now.
        """
        found = self.scope.narrow(maybe_under_pressure(self.policy)).order_by("-active_tokens", "conversation_id")
        found = found.annotate(last_outcome=last_outcome_of_resting())
        pressed = []
        for row in found[:MOST_CHECKED]:
            decision: Any = decide(row, self.policy, last_outcome=row.last_outcome)
            if decision.is_pressing:
                pressed.append(record_of(PressedConversation, decision, title=str(row)))
        return pressed
