"""Which summaries of the context stand for a range of messages, and for how many of them."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from conversations.errors import Invalid
from conversations.models import Conversation
from conversations.scope import Scope
from conversations.sql import rows
from retrieval.describing.summary_outlines import OUTLINE, outline
from retrieval.lineage_steps import SOURCES
from retrieval.types import SummaryOutline

# As of a moment: a summary is there from when it was created on. Only of one that reaches beyond the range are the
# messages within counted; one that spans the range and has none of it does not cover it.
_COVERING = f"""
    WITH RECURSIVE shown AS MATERIALIZED (
        SELECT s.summary_id, s.first_seq < %(from)s OR s.last_seq > %(upto)s AS is_wider
        FROM summaries s
        WHERE s.conversation_id = %(conversation_id)s AND s.first_seq <= %(upto)s AND s.last_seq >= %(from)s
          AND s.created_at <= %(as_of)s
          AND NOT EXISTS (
              SELECT FROM summary_parents p JOIN summaries d ON d.summary_id = p.summary_id
              WHERE p.parent_summary_id = s.summary_id AND d.created_at <= %(as_of)s
          ) AND NOT EXISTS (
              SELECT FROM summaries later WHERE later.supersedes_id = s.summary_id AND later.created_at <= %(as_of)s
          )
    ), below AS (
        SELECT summary_id AS root, summary_id FROM shown WHERE is_wider
        UNION
        SELECT below.root, s.summary_id
        FROM below, {SOURCES.format(of="below")} p
        JOIN summaries s ON s.summary_id = p.parent_summary_id
        WHERE s.first_seq <= %(upto)s AND s.last_seq >= %(from)s
    ), held AS (
        SELECT below.root, count(DISTINCT m.message_id) AS messages
        FROM below
        JOIN summary_messages l ON l.summary_id = below.summary_id
        JOIN messages m ON m.message_id = l.message_id
        WHERE m.seq BETWEEN %(from)s AND %(upto)s
        GROUP BY below.root
    )
    {OUTLINE}, 0, CASE WHEN shown.is_wider THEN held.messages ELSE s.descendant_count END
    FROM shown JOIN summaries s ON s.summary_id = shown.summary_id LEFT JOIN held ON held.root = shown.summary_id
    WHERE NOT shown.is_wider OR held.messages > 0
    ORDER BY s.first_seq, s.depth DESC, s.summary_id
"""
NOW = "infinity"


class Range(NamedTuple):
    """The messages of a conversation from one to another, both included, as far as there are any."""

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
    """The range; NotFound if there is no such conversation, Invalid if there can be no such range."""
    for name, seq in (("from_seq", from_seq), ("to_seq", to_seq)):
        if isinstance(seq, bool) or not isinstance(seq, int) or not 1 <= seq < 2**63:
            raise Invalid(f"{name}: {str(seq)[:80]!r} is no place in a conversation; the first is 1.")
    if from_seq > to_seq:
        raise Invalid(f"from_seq: a range from {from_seq} to {to_seq} runs backwards.")
    return Range(scope.conversation(conversation_id), from_seq, to_seq)


def covering(stretch: Range, *, as_of: datetime | str = NOW) -> list[tuple[SummaryOutline, int]]:
    """The summaries that stand for messages of the range, in order, each with for how many."""
    if not stretch.message_count:
        return []
    found = rows(_COVERING, {**stretch.values, "as_of": as_of})
    return [(outline(row[:-1]), row[-1]) for row in found]
