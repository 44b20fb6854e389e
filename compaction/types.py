"""The records of compaction: why, whether, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class Reason(StrEnum):
    """Why a compaction was asked for."""

    THRESHOLD = "threshold"
    MANUAL = "manual"
    MAINTENANCE = "maintenance"
    # A model is back, and summaries that were made without it are made again.
    REDO = "redo"

    @property
    def is_automatic(self) -> bool:
        """Whether nobody asked: such a run starts only under pressure, and stops when the pressure is gone."""
        return self is not Reason.MANUAL


class Trigger(StrEnum):
    """What exerts the pressure."""

    TOKENS = "tokens"
    MESSAGES = "messages"


class Outcome(StrEnum):
    """How a run ended."""

    RUNNING = "running"
    COMPACTED = "compacted"
    NOT_NEEDED = "not_needed"
    NOTHING_TO_DO = "nothing_to_do"
    EXHAUSTED = "exhausted"
    DISABLED = "disabled"
    STOPPED = "stopped"
    ABANDONED = "abandoned"
    FAILED = "failed"
    # There was too little of substance to be worth a summary.
    SKIPPED = "skipped"


class JobState(StrEnum):
    QUEUED = "queued"
    LEASED = "leased"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class CompactionDecision:
    """Whether a conversation is under pressure, and the figures that say so."""

    conversation_id: int
    should_compact: bool
    trigger: Trigger | None
    active_tokens: int
    threshold_tokens: int
    model_token_budget: int
    active_messages: int
    max_active_messages: int


@dataclass(frozen=True)
class CompactionResult:
    """What one execution did. `run_id` is None when there was nothing to record."""

    conversation_id: int
    reason: Reason
    outcome: Outcome
    tokens_before: int
    tokens_after: int
    leaf_summaries: int = 0
    condensed_summaries: int = 0
    redone_summaries: int = 0
    run_id: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RunRecord:
    run_id: str
    conversation_id: int
    reason: Reason
    outcome: Outcome
    started_at: datetime
    finished_at: datetime | None
    tokens_before: int
    tokens_after: int
    leaf_summaries: int
    condensed_summaries: int
    redone_summaries: int
    job_id: int | None
    # The figures behind the outcome, such as those of the significance gate.
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class JobRecord:
    """A piece of work that somebody will do: the row is the job, the queue only wakes a worker."""

    job_id: int
    conversation_id: int
    reason: Reason
    state: JobState
    requested_at: datetime
    attempts: int
    finished_at: datetime | None = None
    # The runs that it led to, newest first; none where there was nothing to do.
    run_ids: tuple[str, ...] = ()
