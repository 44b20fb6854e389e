"""The records of the ledger: what was found, and what was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

# What a line says, by member, but for its hash.
Line = dict[str, Any]


@dataclass(frozen=True)
class Tally:
    """How many there are of each sort; the end of a conversation and the trailer of a ledger say so."""

    messages: int = 0
    parts: int = 0
    summaries: int = 0
    runs: int = 0
    boundaries: int = 0
    files: int = 0
    references: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(**{each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)})


@dataclass(frozen=True)
class LedgerFinding:
    """One place where a ledger contradicts itself, by line, from 1."""

    line: int
    code: str
    detail: str


@dataclass(frozen=True)
class AnchoredReport:
    """The anchor that a ledger was compared with, and how much of the ledger it covers.

    Without `key_is_trusted` the signature was checked with the key in the anchor itself, which anybody can put there.
    """

    made_at: str
    site: str
    public_key: str
    key_is_trusted: bool
    conversations: int
    # Conversations of the ledger that the anchor does not name: it proves nothing of them.
    unnamed_conversations: int


@dataclass(frozen=True)
class LedgerReport:
    """What verifying came to. All findings are counted, by code; the first of them are told."""

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
    """What was written. The line_hash of the last line stands for all: keep it elsewhere, and any change shows."""

    file: str
    lines: int
    conversations: int
    counts: Tally
    line_hash: str
    # How many lines were there already, of an export that was continued.
    continued_after: int = 0


@dataclass(frozen=True)
class ImportedLedger:
    """One conversation that was rebuilt."""

    conversation_id: int
    session_id: str
    counts: Tally


@dataclass(frozen=True)
class ImportReport:
    """What was rebuilt, and the sessions that were there already and left alone."""

    file: str
    line_hash: str
    conversations: tuple[ImportedLedger, ...]
    left_alone: tuple[str, ...] = ()
