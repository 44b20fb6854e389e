"""Records of the ledger: counts, findings and reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from conversations.content.lossless_values import storable

# The members of a line, without its hash.
Line = dict[str, Any]

# A report lists this many findings, and counts all.
MOST_LISTED = 100


@dataclass(frozen=True)
class Tally:
    """The number of lines of each type."""

    messages: int = 0
    parts: int = 0
    summaries: int = 0
    session_summaries: int = 0
    runs: int = 0
    boundaries: int = 0
    files: int = 0
    references: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)})

    def as_counts(self) -> dict[str, int]:
        """Return the counts of a ledger: session summaries only if there are any."""
        return {name: value for name, value in vars(self).items() if value or name != "session_summaries"}


@dataclass(frozen=True)
class LedgerFinding:
    """One place where a ledger contradicts itself; lines count from 1."""

    line: int
    code: str
    detail: str


@dataclass
class Findings:
    """Collects findings of the current `line`: all are counted, the first kept."""

    line: int = 0
    first: list[LedgerFinding] = field(default_factory=list)
    by_code: Counter[str] = field(default_factory=Counter)

    def add(self, code: str, detail: str) -> None:
        self.by_code[code] += 1
        if len(self.first) < MOST_LISTED:
            # Details may quote the ledger, and must be printable.
            self.first.append(LedgerFinding(self.line, code, storable(detail)))

    def require(self, holds: bool, code: str, detail: str) -> None:
        if not holds:
            self.add(code, detail)


@dataclass(frozen=True)
class AnchoredReport:
    """The anchor that a ledger was compared with, and its coverage.

    Without `key_is_trusted` the signature was checked with the key in the anchor itself, which a forger can replace.
    """

    made_at: str
    site: str
    public_key: str
    key_is_trusted: bool
    conversations: int
    # Conversations of the ledger that the anchor does not cover.
    unnamed_conversations: int


@dataclass(frozen=True)
class LedgerReport:
    """The result of verifying a ledger: all findings counted, the first listed."""

    source: str
    lines: int
    conversations: int
    counts: Tally
    line_hash: str
    is_clean: bool
    finding_count: int = 0
    by_code: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[LedgerFinding, ...] = ()
    anchor: AnchoredReport | None = None


@dataclass(frozen=True)
class ExportReport:
    """A written ledger; a copy of its line_hash, kept elsewhere, reveals changes."""

    file: str
    lines: int
    conversations: int
    counts: Tally
    line_hash: str
    # The number of lines that a continued export found in the file.
    continued_after: int = 0


@dataclass(frozen=True)
class ImportedLedger:
    """One imported conversation."""

    conversation_id: int
    session_id: str
    counts: Tally


@dataclass(frozen=True)
class ImportReport:
    """The imported conversations, and the existing ones that were skipped."""

    file: str
    line_hash: str
    conversations: tuple[ImportedLedger, ...]
    left_alone: tuple[str, ...] = ()
