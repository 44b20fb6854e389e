"""The records of integrity: what was checked, and what was found."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Severity(StrEnum):
    """What a finding puts in doubt."""

    # What was said: a message is gone, altered, or cannot be reached.
    CRITICAL = "critical"
    # What is told of it: context and lineage do not say the truth, which messages and links still know.
    ERROR = "error"
    # What is known without looking: a figure that can be counted again.
    WARNING = "warning"


@dataclass(frozen=True)
class Finding:
    """One place where an invariant does not hold."""

    conversation_id: int
    id: str
    detail: str


@dataclass(frozen=True)
class InvariantResult:
    """What became of one invariant: how often it is broken, exactly, and the first places."""

    code: str
    severity: Severity
    sentence: str
    count: int
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class IntegrityReport:
    """What one check found. All of it was read at one moment of the database, `started_at`."""

    started_at: datetime
    finished_at: datetime
    conversation_id: int | None
    conversations_checked: int
    messages_checked: int
    is_clean: bool
    invariants: tuple[InvariantResult, ...]

    @property
    def broken(self) -> tuple[InvariantResult, ...]:
        """The invariants that do not hold."""
        return tuple(result for result in self.invariants if result.count)
