"""Records of integrity: reports, findings, scans, repair plans, quarantines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from compaction.types import JobState
from conversations.types import MessageRecord


class Severity(StrEnum):
    """How severe a finding is."""

    # A message is missing, altered, or cannot be reached.
    CRITICAL = "critical"
    # Messages are complete, but the context or the lineage contradicts them; both can be derived again.
    ERROR = "error"
    # A count is wrong and can be counted again.
    WARNING = "warning"


class ScanMode(StrEnum):
    """How much a check covers."""

    # All conversations, with all invariants.
    FULL = "full"
    # The conversations that have changed since they were last found clean.
    INCREMENTAL = "incremental"


class Risk(StrEnum):
    """What a wrong repair could lose."""

    # Nothing: the step writes values derived from rows that stay.
    LOW = "low"
    # The step changes what a model sees.
    MEDIUM = "medium"
    # The step writes a text from outside the database.
    HIGH = "high"


class PlanState(StrEnum):
    PROPOSED = "proposed"
    APPROVED = "approved"
    APPLIED = "applied"
    # Applying it failed and changed nothing; `outcome` has the reason.
    REFUSED = "refused"
    UNDONE = "undone"


class StepState(StrEnum):
    PROPOSED = "proposed"
    APPROVED = "approved"
    APPLIED = "applied"
    UNDONE = "undone"
    # A person rejected it.
    REFUSED = "refused"
    # Its target had changed before it was applied.
    STALE = "stale"


@dataclass(frozen=True)
class Finding:
    """One violation of an invariant.

    `conversation_id` is absent for rows that belong to no conversation.
    """

    conversation_id: int | None
    id: str
    detail: str


@dataclass(frozen=True)
class InvariantResult:
    """The result of one invariant: number of violations, first findings, duration."""

    code: str
    severity: Severity
    sentence: str
    count: int
    findings: tuple[Finding, ...] = ()
    milliseconds: int = 0


@dataclass(frozen=True)
class ReportOutline:
    """One check: what it covered, and the number of its findings."""

    report_id: str
    extent: ScanMode
    # Absent for a check of a whole workspace, or of everything.
    conversation_id: int | None
    started_at: datetime
    # Absent while a scan is running.
    finished_at: datetime | None
    conversations_checked: int
    messages_checked: int
    finding_count: int
    is_clean: bool


@dataclass(frozen=True)
class IntegrityState:
    """How much was checked, and whether any damage is known.

    `is_clean` is true only after a finished full check of everything without known damage since; absent if there was no
    such check. `conversations_checked` and `messages_checked` count what was checked at some time,
    `messages_since_whole_check` the messages added after the last full check of everything. `repair_plans_proposed`
    counts plans with steps that wait for a decision. `newest_report_id` is the newest check of everything, and
    `finding_count` its number of findings; `conversations_with_findings` also counts what checks of single
    conversations found since.
    """

    conversations: int
    messages: int
    conversations_checked: int
    messages_checked: int
    conversations_with_findings: int
    repair_plans_proposed: int
    # Findings of the newest check of everything, full or incremental.
    finding_count: int
    messages_since_whole_check: int
    is_clean: bool | None
    whole_report_id: str | None
    whole_checked_at: datetime | None
    newest_report_id: str | None

    @property
    def whole_messages(self) -> int:
        """The number of current messages that the last full check of everything covered."""
        return self.messages - self.messages_since_whole_check


@dataclass(frozen=True)
class IntegrityReport(ReportOutline):
    """The result of one check, by invariant.

    A check in the foreground reads one snapshot, at `started_at`; a scan in the background reads one for each batch.
    `unchecked` are the conversations whose check timed out.
    """

    invariants: tuple[InvariantResult, ...] = ()
    unchecked: tuple[int, ...] = ()
    # The newest repair plan for it.
    repair_id: str | None = None

    @property
    def broken(self) -> tuple[InvariantResult, ...]:
        """The invariants with findings."""
        return tuple(result for result in self.invariants if result.count)


@dataclass(frozen=True)
class FindingRecord:
    """A finding of a report; `is_quarantined`: its target is withheld from models."""

    finding_id: int
    code: str
    severity: Severity
    conversation_id: int | None
    id: str
    detail: str
    is_quarantined: bool


@dataclass(frozen=True)
class ReportPage:
    """A report with a page of its findings.

    `next_cursor` continues the page; it is absent at the end.
    """

    report: IntegrityReport
    findings: Annotated[tuple[FindingRecord, ...], Field(serialization_alias="items")]
    next_after_id: Annotated[int | None, Field(exclude=True)]
    next_cursor: str | None = None


@dataclass(frozen=True)
class ScanRecord:
    """A check in the background, its progress and its result."""

    scan_id: int
    conversation_id: int | None
    extent: ScanMode
    with_plan: bool
    state: JobState
    requested_at: datetime
    finished_at: datetime | None
    attempts: int
    report_id: str | None
    repair_id: str | None
    # The report so far; absent before a worker has begun.
    report: ReportOutline | None


@dataclass(frozen=True)
class StepRecord:
    """One step of a repair plan, with the values before and after."""

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
    """A finding that no step repairs, and why."""

    code: str
    conversation_id: int | None
    id: str
    why: str


@dataclass(frozen=True)
class _RepairPlan:
    repair_id: str
    report_id: str
    created_at: datetime
    state: PlanState
    applied_at: datetime | None
    undone_at: datetime | None
    ledger_file_id: str | None


@dataclass(frozen=True)
class RepairPlanOutline(_RepairPlan):
    """A repair plan without its steps, only their counts."""

    step_count: int
    proposed_steps: int
    unplanned_count: int


@dataclass(frozen=True)
class RepairPlanRecord(_RepairPlan):
    """A repair plan for the findings of a report.

    `outcome` is the result of applying it.
    """

    steps: tuple[StepRecord, ...]
    unplanned: tuple[Unplanned, ...]
    outcome: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class QuarantinedText:
    """The text of a withheld item; for a message, also its record.

    `is_cut`: the file is longer than this `text`.
    """

    id: str
    conversation_id: int
    text: str
    message: MessageRecord | None = None
    is_cut: bool = False


@dataclass(frozen=True)
class QuarantineRecord:
    """An item whose text is withheld from models until it is released."""

    quarantine_id: int
    conversation_id: int
    target: str
    reason: str
    created_at: datetime
    released_at: datetime | None
