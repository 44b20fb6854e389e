"""Findings as they come: all are counted, the first are kept. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from conversations.content.lossless_values import storable
from conversations.ledger.types import LedgerFinding

MOST_TOLD = 100


@dataclass
class Findings:
    """What is wrong with a ledger; `line` is the number of the line that is looked at."""

    line: int = 0
    told: list[LedgerFinding] = field(default_factory=list)
    by_code: Counter[str] = field(default_factory=Counter)

    def add(self, code: str, detail: str) -> None:
        self.by_code[code] += 1
        if len(self.told) < MOST_TOLD:
            # It may quote the ledger, and is printed.
            self.told.append(LedgerFinding(self.line, code, storable(detail)))

    def require(self, holds: bool, code: str, detail: str) -> None:
        if not holds:
            self.add(code, detail)
