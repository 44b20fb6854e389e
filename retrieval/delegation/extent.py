"""What a grant reaches: the summaries and messages it names, and what lies below them, so many levels down."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from conversations.sql import array, rows
from retrieval.ids import Named, named
from retrieval.types import ItemKind

# `level` is how far below a named summary; the messages of one at the last level are beyond the grant.
_SUMMARIES = """
    WITH RECURSIVE reach AS (
        SELECT unnest(%(roots)s::text[]) AS summary_id, 0 AS level
        UNION
        SELECT p.parent_summary_id, reach.level + 1
        FROM reach JOIN summary_parents p ON p.summary_id = reach.summary_id
        WHERE reach.level < %(depth)s
    )
    SELECT summary_id, min(level) FROM reach GROUP BY summary_id
"""
_HELD = """
    SELECT DISTINCT message_id FROM summary_messages
    WHERE message_id = ANY(%s) AND summary_id = ANY(%s)
"""
_CONVERSATIONS = """
    SELECT conversation_id FROM messages WHERE message_id = ANY(%s)
    UNION
    SELECT conversation_id FROM summaries WHERE summary_id = ANY(%s)
"""
# Messages that follow each other have the same difference between their seq and their number in the list.
_SPANS = """
    SELECT conversation_id, min(seq), max(seq)
    FROM (
        SELECT conversation_id, seq, seq - row_number() OVER (PARTITION BY conversation_id ORDER BY seq) AS island
        FROM messages WHERE message_id = ANY(%s)
    ) AS named
    GROUP BY conversation_id, island ORDER BY conversation_id, min(seq)
"""
# Everything that could be read below, once: the messages, and the summaries on the way to them.
_COST = """
    SELECT (SELECT coalesce(sum(token_count), 0) FROM summaries WHERE summary_id = ANY(%(below)s))
         + (SELECT coalesce(sum(m.token_count), 0) FROM messages m WHERE m.message_id = ANY(%(messages)s)
            OR m.message_id IN (SELECT message_id FROM summary_messages WHERE summary_id = ANY(%(opened)s)))
"""


@dataclass(frozen=True)
class Extent:
    """The summaries that may be read, each with its level, and the messages that are named themselves."""

    roots: tuple[str, ...]
    depth: int
    levels: Mapping[str, int]
    messages: frozenset[int]

    @classmethod
    def of(cls, item_ids: Sequence[str], *, depth: int) -> Extent:
        """Of these ids of summaries and messages."""
        known = [found for found in map(named, item_ids) if found is not None]
        roots = tuple(each.id for each in known if each.kind is ItemKind.SUMMARY)
        found = rows(_SUMMARIES, {"roots": list(roots), "depth": depth}) if roots else []
        messages = frozenset(each.number for each in known if each.kind is ItemKind.MESSAGE)
        return cls(roots=roots, depth=depth, levels=dict(found), messages=messages)

    def levels_left(self, summary_id: str) -> int:
        """How many levels below this summary may still be opened; -1 if it is not within."""
        level = self.levels.get(summary_id)
        return -1 if level is None else self.depth - level

    def within(self, ids: Collection[Named]) -> frozenset[str]:
        """Those of the ids that exist and may be read."""
        found = {each.id for each in ids if each.kind is ItemKind.SUMMARY and each.id in self.levels}
        asked = {each.number for each in ids if each.kind is ItemKind.MESSAGE and each.number < 2**63}
        held = self.messages & asked
        if asked - held:
            held |= {row[0] for row in rows(_HELD, [array(asked - held), self._opened()])}
        return frozenset(found | {f"msg_{number}" for number in held})

    def conversations(self) -> list[int]:
        """The conversations that all of it is in."""
        return [row[0] for row in rows(_CONVERSATIONS, [array(self.messages), list(self.roots)])]

    def spans(self) -> list[tuple[int, int, int]]:
        """Where the named messages stand: the conversation, and the first and last of those beside each other."""
        return [(id, first, last) for id, first, last in rows(_SPANS, [array(self.messages)])]

    def tokens_below(self) -> int:
        """What everything that may be read would cost."""
        below = [summary_id for summary_id, level in self.levels.items() if level > 0]
        values = {"below": below, "messages": array(self.messages), "opened": self._opened()}
        return int(rows(_COST, values)[0][0])

    def _opened(self) -> list[str]:
        """The summaries whose messages may be read."""
        return [summary_id for summary_id, level in self.levels.items() if level < self.depth]
