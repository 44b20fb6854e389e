"""The records and enumerations of compaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from conversations.types import Level, SummaryKind


class Reason(StrEnum):
    """Why a compaction was requested."""

    THRESHOLD = "threshold"
    MANUAL = "manual"
    # The sweep found pressure for which no append had requested a job, such as after a changed setting or a crash.
    MAINTENANCE = "maintenance"
    # A model is available again, and summaries that were made without one are made again.
    REDO = "redo"
    # A person's request for a redo by a worker, which includes summaries whose texts were rejected.
    REDO_ALL = "redo_all"

    @property
    def is_automatic(self) -> bool:
        """Whether LCM started the run by itself; such a run stops below the threshold."""
        return self in (Reason.THRESHOLD, Reason.MAINTENANCE)


class Trigger(StrEnum):
    """Why a conversation needs compaction: tokens, or messages not summarized."""

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
    # The significance gate found nothing worth a summary.
    SKIPPED = "skipped"
    # A redo got no answer from a model, and a summary still waits for one.
    UNAVAILABLE = "unavailable"


class JobState(StrEnum):
    QUEUED = "queued"
    LEASED = "leased"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class CompactionDecision:
    """Whether a conversation needs compaction, and the numbers that decide it.

    It never does if its setting `enabled` is off. With `autocompact_disabled`, it is compacted only on request.
    """

    conversation_id: int
    should_compact: bool
    trigger: Trigger | None
    active_tokens: int
    threshold_tokens: int
    hard_tokens: int
    # Above the hard threshold even insignificant messages are compacted.
    is_hard: bool
    model_token_budget: int
    active_messages: int
    max_active_messages: int
    enabled: bool
    autocompact_disabled: bool
    # The last run was skipped as not worth a summary, and nothing has been added since.
    passed_over: bool = False

    @property
    def is_pressing(self) -> bool:
        """Whether compaction is needed, and the significance gate does not skip it."""
        return self.should_compact and not self.passed_over


@dataclass(frozen=True)
class CompactionResult:
    """What one compaction run did; `run_id` is absent if there was nothing to record."""

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
    # Further numbers about the outcome, such as those of the significance gate.
    details: Mapping[str, Any] = field(default_factory=dict)
    # The conversation's title, or its session id without one.
    title: str = ""
    # How many of its summaries are degraded: made without the model that should have made them, or from such ones.
    degraded_summaries: int = 0


@dataclass(frozen=True)
class CompactionStatus(CompactionDecision):
    """Whether a conversation needs compaction now, and its last run."""

    run_id: str | None = None
    run: RunRecord | None = None


@dataclass(frozen=True)
class JobRecord:
    """A background job that compacts a conversation."""

    job_id: int
    conversation_id: int
    reason: Reason
    state: JobState
    requested_at: datetime
    attempts: int
    finished_at: datetime | None = None
    # The runs of the job, newest first; none where there was nothing to do.
    run_ids: tuple[str, ...] = ()
    title: str = ""
    # When it can be claimed at the earliest, and when the lease of its worker ends.
    run_after: datetime | None = None
    leased_until: datetime | None = None
    # The kind of the last failure, never its message.
    last_error: str = ""


@dataclass(frozen=True)
class RunsInAnHour:
    """The runs of one hour with one outcome, and the tokens that they freed."""

    hour: datetime
    outcome: Outcome
    runs: int
    tokens_freed: int


@dataclass(frozen=True)
class PressedConversation:
    """A conversation above its compaction threshold; `is_hard`: above the hard one."""

    conversation_id: int
    title: str
    trigger: Trigger
    active_tokens: int
    threshold_tokens: int
    model_token_budget: int
    is_hard: bool


@dataclass(frozen=True)
class LevelShare:
    """The number of summaries made at one escalation level, and their share."""

    level: Level
    summaries: int
    share: float


@dataclass(frozen=True)
class Activity:
    """The statistics of a workspace.

    `tokens_saved` is the tokens of all messages minus those of the contexts. `under_pressure` counts conversations
    above their compaction threshold; `pressed` lists only the fullest of them. `jobs_failed`, `summaries`, `levels` and
    `degraded_summaries` count from `since` on. Hours without runs are left out of `runs`. `degraded_share` is absent if
    no summary was made.
    """

    since: datetime
    conversations: int
    messages: int
    total_tokens: int
    active_tokens: int
    tokens_saved: int
    under_pressure: int
    jobs_waiting: int
    jobs_at_work: int
    jobs_failed: int
    oldest_job_at: datetime | None
    # Jobs that make session, arc and epoch summaries.
    history_jobs_open: int
    history_jobs_failed: int
    pressed: tuple[PressedConversation, ...]
    runs: tuple[RunsInAnHour, ...]
    summaries: int
    levels: tuple[LevelShare, ...]
    degraded_summaries: int
    degraded_share: float | None


@dataclass(frozen=True)
class SeqRange:
    """A range of messages, by seq."""

    first_seq: int
    last_seq: int


@dataclass(frozen=True)
class PlanStep:
    """One planned summary: its sources, target and expected cost."""

    number: int
    kind: SummaryKind
    depth: int
    first_seq: int
    last_seq: int
    # The messages below the summary; more than one range where something protected is skipped.
    ranges: tuple[SeqRange, ...]
    # How many context items the summary replaces, and the earlier steps whose summaries are among them.
    item_count: int
    from_steps: tuple[int, ...]
    source_tokens: int
    target_tokens: int
    expected_tokens: int


@dataclass(frozen=True)
class PlanAlternative:
    """Another configured summarizer, and what the same calls would cost there.

    `cost` is absent if no price is configured.
    """

    summarizer: str
    model: str | None
    cost: float | None


@dataclass(frozen=True)
class PlanOutline:
    """A planned compaction: sizes of the context before and after, calls and cost.

    Calls, tokens and cost assume that every first answer of the model is accepted. `cost` is absent if no price is
    configured.
    """

    plan_id: str
    conversation_id: int
    created_at: datetime
    last_seq: int
    tokens_before: int
    messages_before: int
    items_before: int
    tokens_expected: int
    messages_expected: int
    items_expected: int
    step_count: int
    # The first summarizer in the chain that could be called, and its model, if any; calls, tokens and cost are for it.
    summarizer: str
    model: str | None
    calls: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    # The other summarizers of the chain.
    otherwise: tuple[PlanAlternative, ...]
    # When background execution was requested, and the error code if it was refused.
    requested_at: datetime | None
    refusal: str
    executed_at: datetime | None
    # The run that executed it.
    run_id: str | None


@dataclass(frozen=True)
class PlanRecord(PlanOutline):
    """A planned compaction with its steps, which can be executed exactly."""

    # SHA-256 of the context items that the steps replace, and the settings in force.
    context_hash: str
    steps: tuple[PlanStep, ...]


@dataclass(frozen=True)
class BoundaryRecord:
    """Where a host (agent program) has cut its own context: after `last_seq`.

    `host_reference` is the host's own id for this.
    """

    conversation_id: int
    host_reference: str
    last_seq: int
    recorded_at: datetime
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class FlushResult:
    """A boundary, and the compaction before it was recorded.

    `created` is false if the boundary was already recorded. `job` is the compaction in the background: all of it, if
    this was requested, or the rest of a run that reached its limits.
    """

    boundary: BoundaryRecord
    created: bool
    compaction: CompactionResult | None = None
    job: JobRecord | None = None


class GapKind(StrEnum):
    """Why the messages of a gap cannot be recovered."""

    # The database has no row with these seqs.
    MISSING = "missing"
    # The messages are stored, but neither in the active context nor covered by a summary there.
    UNREACHABLE = "unreachable"


@dataclass(frozen=True)
class CoverageGap:
    """A range of messages that cannot be recovered."""

    first_seq: int
    last_seq: int
    kind: GapKind


@dataclass(frozen=True)
class Coverage:
    """The result of a coverage check: can all messages up to `last_seq` be recovered?

    `stored` messages have a row. Each of them is `summarized`, `raw` (in the active context, not summarized),
    `inactive` (off the active path because the head was moved), or `unreachable`. `missing` counts seqs without a row.
    All gaps are counted; only the first are listed in `gaps`, and `gaps_left_out` is the number of the others.
    `missing_keys` are the requested keys that no stored message has.
    """

    conversation_id: int
    host_reference: str | None
    last_seq: int
    stored: int
    summarized: int
    raw: int
    missing: int
    unreachable: int
    is_complete: bool
    inactive: int = 0
    gaps: tuple[CoverageGap, ...] = ()
    gaps_left_out: int = 0
    missing_keys: tuple[str, ...] = ()
