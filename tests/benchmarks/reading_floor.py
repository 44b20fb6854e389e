"""The floor of reading: the texts of a context, of a summary's sources, of a whole history, in plain prepared SQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lcmsite.connections import connect

_NEWEST_ITEMS = """
    WITH c AS MATERIALIZED (
        SELECT ordinal, token_count, message_id, summary_id FROM context_items
        WHERE conversation_id = %s ORDER BY ordinal DESC LIMIT %s
    )
    SELECT c.ordinal, c.token_count, m.role::text, coalesce(m.content, s.content), coalesce(m.created_at, s.latest_at)
    FROM c LEFT JOIN messages m ON m.message_id = c.message_id LEFT JOIN summaries s ON s.summary_id = c.summary_id
    ORDER BY c.ordinal DESC
"""
_SUMMARY = "SELECT * FROM summaries WHERE summary_id = %s"
_SOURCES = """
    SELECT s.summary_id, s.token_count, s.content FROM summary_parents p
    JOIN summaries s ON s.summary_id = p.parent_summary_id WHERE p.summary_id = %s ORDER BY p.ordinal
"""
_MESSAGES = """
    SELECT m.message_id, m.token_count, m.role::text, m.content, m.created_at FROM summary_messages l
    JOIN messages m ON m.message_id = l.message_id WHERE l.summary_id = %s ORDER BY l.ordinal LIMIT %s
"""
_PARTS = "SELECT * FROM message_parts WHERE message_id = ANY(%s) ORDER BY message_id, ordinal"
_LINKS = """
    SELECT (SELECT array_agg(parent_summary_id ORDER BY ordinal) FROM summary_parents WHERE summary_id = %(id)s),
           (SELECT array_agg(summary_id) FROM summary_parents WHERE parent_summary_id = %(id)s),
           (SELECT count(*) FROM summary_messages WHERE summary_id = %(id)s)
"""
_EVERYTHING = """
    WITH RECURSIVE below AS (
        SELECT %s AS summary_id
        UNION
        SELECT p.parent_summary_id FROM below JOIN summary_parents p ON p.summary_id = below.summary_id
    )
    SELECT m.seq, m.role::text, m.content, m.created_at
    FROM below JOIN summary_messages l ON l.summary_id = below.summary_id JOIN messages m ON m.message_id = l.message_id
    ORDER BY m.seq
"""


class ReadingFloor:
    """A connection that reads with nothing in between."""

    def __init__(self) -> None:
        self.connection = connect(autocommit=True)

    def rows(self, statement: str, values: Any) -> list[tuple[Any, ...]]:
        return self.connection.execute(statement, values, prepare=True).fetchall()

    def assemble(self, conversation_id: int, *, budget: int, items: int) -> int:
        """The texts of so many of the newest items, as far as they fit; their tokens."""
        tokens = 0
        for row in self.rows(_NEWEST_ITEMS, (conversation_id, items)):
            if tokens + row[1] > budget:
                break
            tokens += row[1]
        return tokens

    def expand_summaries(self, summary_id: str) -> None:
        self.rows(_SUMMARY, (summary_id,))
        self.rows(_SOURCES, (summary_id,))

    def expand_messages(self, summary_id: str, *, messages: int) -> None:
        self.rows(_SUMMARY, (summary_id,))
        found = self.rows(_MESSAGES, (summary_id, messages))
        self.rows(_PARTS, ([row[0] for row in found],))

    def describe(self, summary_id: str) -> None:
        self.rows(_SUMMARY, (summary_id,))
        self.rows(_LINKS, {"id": summary_id})

    def everything(self, summary_id: str) -> Iterator[tuple[Any, ...]]:
        """Every message below a summary, oldest first, without its parts."""
        with self.connection.transaction(), self.connection.cursor(name="everything") as cursor:
            cursor.itersize = 2000
            yield from cursor.execute(_EVERYTHING, (summary_id,))
