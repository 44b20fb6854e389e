"""Find the summaries that cover a range of messages."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from conversations.errors import Invalid
from conversations.models import Conversation
from conversations.scope import Scope
from conversations.sql import load, rows
from retrieval.describing.summary_outlines import outline
from retrieval.types import SummaryOutline

_SQL = load("retrieval/describe_range.sql")
NOW = "infinity"


class Range(NamedTuple):
    """The messages of a conversation between two seqs, both included."""

    conversation: Conversation
    from_seq: int
    to_seq: int

    @property
    def conversation_id(self) -> int:
        return int(self.conversation.conversation_id)

    @property
    def last_seq(self) -> int:
        """The last message of the range that there is."""
        return min(self.to_seq, self.conversation.next_seq - 1)

    @property
    def message_count(self) -> int:
        return max(0, self.last_seq - self.from_seq + 1)

    @property
    def values(self) -> dict[str, int]:
        """For statements."""
        return {"conversation_id": self.conversation_id, "from": self.from_seq, "upto": self.last_seq}


def range_of(conversation_id: int, from_seq: int, to_seq: int, *, scope: Scope) -> Range:
    """The range; NotFound without such a conversation, Invalid for a wrong range."""
    for name, seq in (("from_seq", from_seq), ("to_seq", to_seq)):
        if isinstance(seq, bool) or not isinstance(seq, int) or not 1 <= seq < 2**63:
            raise Invalid(f"{name}: {str(seq)[:80]!r} is no place in a conversation; the first is 1.")
    if from_seq > to_seq:
        raise Invalid(f"from_seq: a range from {from_seq} to {to_seq} runs backwards.")
    return Range(scope.conversation(conversation_id), from_seq, to_seq)


def covering(stretch: Range, *, as_of: datetime | str = NOW) -> list[tuple[SummaryOutline, int]]:
    """The covering summaries in order, each with its number of messages in range."""
    if not stretch.message_count:
        return []
    found = rows(_SQL["covering"], {**stretch.values, "as_of": as_of})
    return [(outline(row[:-1]), row[-1]) for row in found]
