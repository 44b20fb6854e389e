"""What a range of messages holds: the context that stands for it, and whatever is below, as an outline to be paged."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from conversations.sql import rows
from retrieval.describing.covering import Range
from retrieval.expansion.expand_outline import BELOW, EACH, Entry, as_entries, levels

# As below a summary, but from several at once, and with the messages that were raw at the time. A summary that begins
# before the range has its place where the range begins.
_WINDOW = f"""
    WITH RECURSIVE reach(summary_id, level) AS (
        SELECT s.summary_id, 1 FROM summaries s
        WHERE s.summary_id = ANY(%(roots)s) AND s.first_seq <= %(upto)s AND s.last_seq >= %(from)s
        {BELOW}, then_raw AS (
        -- What is raw now, and what was compacted since.
        SELECT message_id FROM context_items
        WHERE conversation_id = %(conversation_id)s AND ordinal BETWEEN %(from)s AND %(upto)s
          AND item_type = 'message'
        UNION
        SELECT l.message_id FROM summaries s JOIN summary_messages l ON l.summary_id = s.summary_id
        WHERE s.conversation_id = %(conversation_id)s AND s.created_at > %(as_of)s
    ), raw AS (
        SELECT m.message_id, m.seq, m.token_count, 1 AS level, %(of)s AS of
        FROM then_raw JOIN messages m ON m.message_id = then_raw.message_id
        WHERE %(include_messages)s AND m.seq BETWEEN %(from)s AND %(upto)s
          AND NOT EXISTS (
              SELECT FROM summary_messages l JOIN summaries s ON s.summary_id = l.summary_id
              WHERE l.message_id = m.message_id AND s.created_at <= %(as_of)s
          )
        ORDER BY m.seq LIMIT %(most)s
    ), near AS (
        SELECT * FROM (SELECT * FROM linked UNION ALL SELECT * FROM raw) AS both_kinds ORDER BY seq LIMIT %(most)s
    )
    SELECT greatest(s.first_seq, %(first)s), -s.depth, s.summary_id, NULL::bigint, s.token_count, nodes.level,
           coalesce((SELECT p.summary_id FROM summary_parents p JOIN nodes n ON n.summary_id = p.summary_id
                     WHERE p.parent_summary_id = s.summary_id AND n.level = nodes.level - 1
                     ORDER BY p.summary_id LIMIT 1), %(of)s)
    FROM nodes, {EACH.format(id="nodes.summary_id")} s
    WHERE greatest(s.first_seq, %(first)s) BETWEEN %(from)s AND %(upto)s
    UNION ALL
    SELECT seq, 1, '', message_id, token_count, level, of FROM near
"""
_MESSAGES = """
    SELECT seq, 1, '', message_id, token_count, 1, %(of)s::text
    FROM messages
    WHERE conversation_id = %(conversation_id)s AND seq BETWEEN %(from)s AND %(upto)s
    ORDER BY seq LIMIT %(most)s
"""


@dataclass(frozen=True)
class Within:
    """The context of a range as of a moment, and everything within `depth` levels (-1: all) of it."""

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
        return as_entries(rows(_WINDOW, values))


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
        return as_entries(rows(_MESSAGES, values))
