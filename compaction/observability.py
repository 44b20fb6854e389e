"""The metrics of compaction: runs by outcome, and summaries."""

from __future__ import annotations

from prometheus_client import Counter, Histogram

from compaction.models import CompactionRun
from compaction.types import Outcome, Reason
from conversations.types import Level, NewSummary, SummaryKind

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0)

RUNS = Counter(
    "lcm_compaction_runs_total", "Compaction runs that left a row, by outcome and reason.", ["outcome", "reason"]
)
RUN_SECONDS = Histogram("lcm_compaction_run_seconds", "How long these runs took.", buckets=_SECONDS)
TOKENS_SAVED = Counter("lcm_compaction_tokens_saved_total", "Tokens that runs took out of active contexts.")
SUMMARIES = Counter("lcm_summaries_created_total", "Summaries written, by kind.", ["kind"])
LEVELS = Counter(
    "lcm_summaries_by_level_total",
    "Summaries written, by level of escalation: many deterministic ones mean that models fail.",
    ["level"],
)

# These series exist from the start: no rate can be computed for a series that begins with its first event.
for _reason in (Reason.THRESHOLD, Reason.MANUAL, Reason.MAINTENANCE):
    RUNS.labels(Outcome.COMPACTED.value, _reason.value)
for _kind in SummaryKind:
    SUMMARIES.labels(_kind.value)
for _level in Level:
    LEVELS.labels(_level.value)


def count_ended_run(run: CompactionRun) -> None:
    """Count an ended run that has a row."""
    RUNS.labels(Outcome(run.outcome).value, Reason(run.reason).value).inc()
    assert run.finished_at is not None
    RUN_SECONDS.observe((run.finished_at - run.started_at).total_seconds())
    TOKENS_SAVED.inc(max(0, run.tokens_before - run.tokens_after))


def count_abandoned_run(reason: str) -> None:
    """Count a run whose worker died."""
    RUNS.labels(Outcome.ABANDONED.value, reason).inc()


def count_summary(summary: NewSummary) -> None:
    """Count a summary that is committed."""
    SUMMARIES.labels(SummaryKind(summary.kind).value).inc()
    LEVELS.labels(summary.level.value).inc()
