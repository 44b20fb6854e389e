"""The metrics of compaction: runs by outcome, and summaries."""

from __future__ import annotations

from compaction.types import Outcome, Reason
from conversations.metering import Meter
from conversations.types import Level, NewSummary, SummaryKind

_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0)

RUNS = Meter(
    "lcm_compaction_runs_total",
    "Compaction runs that left a row, by outcome and reason.",
    labels=("outcome", "reason"),
    known=tuple((Outcome.COMPACTED.value, reason.value) for reason in (Reason.THRESHOLD, Reason.MANUAL)),
)
RUN_SECONDS = Meter("lcm_compaction_run_seconds", "How long these runs took.", buckets=_SECONDS)
TOKENS_SAVED = Meter("lcm_compaction_tokens_saved_total", "Tokens that runs took out of active contexts.")
SUMMARIES = Meter(
    "lcm_summaries_created_total",
    "Summaries written, by kind.",
    labels=("kind",),
    known=tuple((kind.value,) for kind in SummaryKind),
)
LEVELS = Meter(
    "lcm_summaries_by_level_total",
    "Summaries written, by the level of escalation that made them: many deterministic ones mean that models fail.",
    labels=("level",),
    known=tuple((level.value,) for level in Level),
)


def ended(*, reason: Reason, outcome: Outcome, seconds: float, saved: int) -> None:
    """Count a run that has left a row."""
    RUNS.add(1, outcome.value, reason.value)
    RUN_SECONDS.add(seconds)
    if saved > 0:
        TOKENS_SAVED.add(saved)


def abandoned(reason: str) -> None:
    """Count a run whose worker is gone."""
    RUNS.add(1, Outcome.ABANDONED.value, reason)


def created(summary: NewSummary) -> None:
    """Count a summary that is committed."""
    SUMMARIES.add(1, SummaryKind(summary.kind).value)
    LEVELS.add(1, summary.level.value)
