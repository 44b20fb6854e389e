"""The floor of a check: that every message is there, in place and reachable once, asked in plain SQL, and nothing more.

It computes no hash of anything, names no place where something is wrong, and looks at one conversation.
"""

from __future__ import annotations

from collections.abc import Iterator

from lcmsite.connections import connect

_QUESTIONS = (
    # Are the messages complete, and in one place each?
    "SELECT count(*) <> max(seq) OR min(seq) <> 1 FROM messages WHERE conversation_id = %(id)s",
    """SELECT count(*) FROM (SELECT FROM messages WHERE conversation_id = %(id)s GROUP BY seq HAVING count(*) > 1) x""",
    """SELECT count(*) FROM messages m WHERE conversation_id = %(id)s AND chained_parts >
         (SELECT count(*) FROM message_parts p WHERE p.message_id = m.message_id)""",
    """SELECT count(*) FROM (SELECT FROM message_parts p JOIN messages m USING (message_id)
         WHERE m.conversation_id = %(id)s GROUP BY p.message_id, p.ordinal HAVING count(*) > 1) x""",
    # Does the context point at what is there, and at everything once?
    """SELECT count(*) FROM context_items c LEFT JOIN messages m USING (message_id)
         LEFT JOIN summaries s USING (summary_id)
         WHERE c.conversation_id = %(id)s AND m.message_id IS NULL AND s.summary_id IS NULL""",
    """SELECT count(*) FROM (SELECT FROM context_items WHERE conversation_id = %(id)s
         GROUP BY ordinal HAVING count(*) > 1) x""",
    """SELECT count(*) FROM messages m WHERE conversation_id = %(id)s AND
         (SELECT count(*) FROM context_items c WHERE c.message_id = m.message_id)
         + (SELECT count(*) FROM summary_messages l WHERE l.message_id = m.message_id) <> 1""",
    # Does the lineage lead somewhere, downwards, and from everything?
    """SELECT count(*) FROM summaries s WHERE conversation_id = %(id)s
         AND NOT EXISTS (SELECT FROM summary_messages l WHERE l.summary_id = s.summary_id)
         AND NOT EXISTS (SELECT FROM summary_parents p WHERE p.summary_id = s.summary_id)""",
    """SELECT count(*) FROM summaries s JOIN summary_messages l USING (summary_id) JOIN messages m USING (message_id)
         WHERE s.conversation_id = %(id)s AND m.conversation_id <> s.conversation_id""",
    """SELECT count(*) FROM summaries s JOIN summary_parents p USING (summary_id)
         JOIN summaries source ON source.summary_id = p.parent_summary_id
         WHERE s.conversation_id = %(id)s AND source.depth >= s.depth""",
    """SELECT count(*) FROM (SELECT FROM summaries s JOIN summary_messages l USING (summary_id)
         JOIN messages m USING (message_id) WHERE s.conversation_id = %(id)s GROUP BY s.summary_id
         HAVING min(m.seq) < s.first_seq OR max(m.seq) > s.last_seq) x""",
    # Are the counters what counting gives?
    """SELECT c.total_tokens <> sum(m.token_count) FROM conversations c JOIN messages m USING (conversation_id)
         WHERE conversation_id = %(id)s GROUP BY c.conversation_id""",
    """SELECT c.active_tokens <> sum(i.token_count) FROM conversations c JOIN context_items i USING (conversation_id)
         WHERE conversation_id = %(id)s GROUP BY c.conversation_id""",
)
# What every hash costs the server that computes it, without looking for anything else.
_HASHES = (
    """SELECT count(*) FROM messages WHERE conversation_id = %(id)s
         AND sha256(convert_to(content, 'UTF8')) <> content_hash""",
    """SELECT count(*) FROM message_parts p JOIN messages m USING (message_id) WHERE m.conversation_id = %(id)s
         AND sha256(convert_to(coalesce(p.text_content, p.tool_output, ''), 'UTF8')) = p.part_hash""",
)


def check(conversation_id: int, *, hashes: bool) -> None:
    """Ask every question once, on a connection of its own."""
    with connect() as connection:
        for question in _asked(hashes):
            connection.execute(question, {"id": conversation_id}).fetchall()


def _asked(hashes: bool) -> Iterator[str]:
    yield from _QUESTIONS
    if hashes:
        yield from _HASHES
