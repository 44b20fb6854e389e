"""The records of integrity: what was checked, and what was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field


class Severity(StrEnum):
    """What a finding puts in doubt."""

    # What was said: a message is gone, altered, or cannot be reached.
    CRITICAL = "critical"
    # What is told of it: context and lineage do not say the truth, which messages and links still know.
    ERROR = "error"
    # What is known without looking: a figure that can be counted again.
    WARNING = "warning"


class ScanMode(StrEnum):
    """How much a check looks through."""

    # All conversations, with all invariants.
    FULL = "full"
    # The conversations that have changed since they were last found clean.
    INCREMENTAL = "incremental"


class ScanState(StrEnum):
    QUEUED = "queued"
    LEASED = "leased"
    DONE = "done"
    FAILED = "failed"


class Risk(StrEnum):
    """What could be lost if a repair is wrong."""

    # Nothing: what is written is derived from what stays.
    LOW = "low"
    # What a model sees changes.
    MEDIUM = "medium"
    # A text comes in from outside.
    HIGH = "high"


class PlanState(StrEnum):
    PROPOSED = "proposed"
    APPROVED = "approved"
    APPLIED = "applied"
    # It was to be applied, and nothing was done; `outcome` says why.
    REFUSED = "refused"
    UNDONE = "undone"


class StepState(StrEnum):
    PROPOSED = "proposed"
    APPROVED = "approved"
    APPLIED = "applied"
    UNDONE = "undone"
    # A person has said no.
    REFUSED = "refused"
    # What it was made for had changed when it was to be applied.
    STALE = "stale"


@dataclass(frozen=True)
class Finding:
    """One place where an invariant does not hold; of no conversation where it belongs to none."""

    conversation_id: int | None
    id: str
    detail: str


@dataclass(frozen=True)
class InvariantResult:
    """What became of one invariant: how often it is broken, exactly, the first places, and what it took to know."""

    code: str
    severity: Severity
    sentence: str
    count: int
    findings: tuple[Finding, ...] = ()
    milliseconds: int = 0


@dataclass(frozen=True)
class ReportOutline:
    """What one check looked at, and in how many places something does not hold."""

    report_id: str
    extent: ScanMode
    # None for a check of the whole workspace, or, if that is None too, of everything.
    conversation_id: int | None
    started_at: datetime
    # None while a scan is still at it.
    finished_at: datetime | None
    conversations_checked: int
    messages_checked: int
    finding_count: int
    is_clean: bool


@dataclass(frozen=True)
class IntegrityState:
    """How much of everything was checked, and what is known of it.

    `is_clean` is true only where a full check of everything has ended and nothing is known to be damaged since; None
    where everything was never checked at once. `conversations_checked` and their messages were each looked through at
    some time; `messages_since_whole_check` have come after the last check of everything.
    """

    conversations: int
    messages: int
    conversations_checked: int
    messages_checked: int
    conversations_with_findings: int
    # Of the newest check of everything, or of what had changed in it.
    finding_count: int
    messages_since_whole_check: int
    is_clean: bool | None
    whole_report_id: str | None
    whole_checked_at: datetime | None
    newest_report_id: str | None

    @property
    def whole_messages(self) -> int:
        """How many of today's messages the last check of everything has seen."""
        return self.messages - self.messages_since_whole_check


@dataclass(frozen=True)
class IntegrityReport(ReportOutline):
    """What one check found, invariant by invariant.

    A check that somebody waits for reads one moment of the database, `started_at`; a scan in the background, one moment
    for each batch. `unchecked` are conversations that took longer than a scan may.
    """

    invariants: tuple[InvariantResult, ...] = ()
    unchecked: tuple[int, ...] = ()
    # The newest plan against it.
    repair_id: str | None = None

    @property
    def broken(self) -> tuple[InvariantResult, ...]:
        """The invariants that do not hold."""
        return tuple(result for result in self.invariants if result.count)


@dataclass(frozen=True)
class FindingRecord:
    """A finding of a report. One that `is_quarantined` is known, and what it is about is shown to no model."""

    finding_id: int
    code: str
    severity: Severity
    conversation_id: int | None
    id: str
    detail: str
    is_quarantined: bool


@dataclass(frozen=True)
class ReportPage:
    """A report, and some of its findings; `next_after_id` continues behind them, or is None at the end."""

    report: IntegrityReport
    findings: Annotated[tuple[FindingRecord, ...], Field(serialization_alias="items")]
    next_after_id: Annotated[int | None, Field(exclude=True)]
    next_cursor: str | None = None


@dataclass(frozen=True)
class ScanRecord:
    """A check in the background, how far it is, and what came of it."""

    scan_id: int
    conversation_id: int | None
    extent: ScanMode
    with_plan: bool
    state: ScanState
    requested_at: datetime
    finished_at: datetime | None
    attempts: int
    report_id: str | None
    repair_id: str | None
    # What its report says until now; None before a worker has begun with it.
    report: ReportOutline | None


@dataclass(frozen=True)
class StepRecord:
    """One step of a repair plan: what is done to what, what stands there and what will, and why."""

    ordinal: int
    operation: str
    conversation_id: int | None
    target: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    risk: Risk
    reversible: bool
    why: str
    codes: tuple[str, ...]
    state: StepState
    approved_by: str
    approved_at: datetime | None
    applied_at: datetime | None


@dataclass(frozen=True)
class Unplanned:
    """A finding that no operation mends, and why."""

    code: str
    conversation_id: int | None
    id: str
    why: str


@dataclass(frozen=True)
class RepairPlanOutline:
    """A repair plan in figures: how many steps it has, how many of them await an answer, and what nothing mends."""

    repair_id: str
    report_id: str
    created_at: datetime
    state: PlanState
    applied_at: datetime | None
    undone_at: datetime | None
    ledger_file_id: str | None
    step_count: int
    proposed_steps: int
    unplanned_count: int


@dataclass(frozen=True)
class RepairPlanRecord:
    """What could be done about the findings of a report. `outcome` says what came of it."""

    repair_id: str
    report_id: str
    created_at: datetime
    state: PlanState
    applied_at: datetime | None
    undone_at: datetime | None
    ledger_file_id: str | None
    steps: tuple[StepRecord, ...]
    unplanned: tuple[Unplanned, ...]
    outcome: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class QuarantineRecord:
    """A damaged thing that is shown to no model until it is put right."""

    quarantine_id: int
    conversation_id: int
    target: str
    reason: str
    created_at: datetime
    released_at: datetime | None
