"""The outline of a range: its context as of a moment, and all below."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from conversations.sql import load, rows
from retrieval.describing.covering import Range
from retrieval.expansion.expand_outline import Entry, as_entries, levels

_SQL = load("retrieval/expand.sql")


@dataclass(frozen=True)
class Within:
    """The context of a range as of a moment, with `depth` levels below (-1: all)."""

    stretch: Range
    roots: Sequence[str]
    as_of: datetime
    depth: int
    include_messages: bool

    @property
    def first_seq(self) -> int:
        return self.stretch.from_seq

    @property
    def last_seq(self) -> int:
        return self.stretch.last_seq

    @property
    def is_shallow(self) -> bool:
        return self.depth == 1

    @property
    def name(self) -> str:
        """Tells this context from any other."""
        shown = hashlib.sha256(" ".join(self.roots).encode()).hexdigest()[:16]
        return f"{self.stretch.conversation_id} {shown}"

    def window(self, begin: int, upto: int, most: int) -> list[Entry]:
        values = {
            "conversation_id": self.stretch.conversation_id,
            "of": f"conv_{self.stretch.conversation_id}",
            "roots": list(self.roots),
            "as_of": self.as_of,
            "depth": levels(self.depth),
            "include_messages": self.include_messages,
            "first": self.first_seq,
            "from": begin,
            "upto": upto,
            "most": most,
        }
        return as_entries(rows(_SQL["below_range"], values))


@dataclass(frozen=True)
class Spoken:
    """The messages of a range and nothing else, whatever has become of them."""

    stretch: Range
    is_shallow: bool = True

    @property
    def first_seq(self) -> int:
        return self.stretch.from_seq

    @property
    def last_seq(self) -> int:
        return self.stretch.last_seq

    @property
    def name(self) -> str:
        return f"{self.stretch.conversation_id} messages"

    def window(self, begin: int, upto: int, most: int) -> list[Entry]:
        values = {
            "conversation_id": self.stretch.conversation_id,
            "of": f"conv_{self.stretch.conversation_id}",
            "from": begin,
            "upto": upto,
            "most": most,
        }
        return as_entries(rows(_SQL["messages_of_range"], values))
