"""What may quote a conversation outside of its messages, summaries and files, and how an erasure reaches it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import connection

from conversations.sql import rows
from integrity.retention.types import TextElsewhere

# Each statement takes the conversation, whether all of it is erased, and the ids of what is. Those that count say
# where words are, those that erase take them away.
_THINGS = """
    (q.target = ANY(%(ids)s) OR EXISTS (
        SELECT FROM message_parts p JOIN messages m USING (message_id)
        WHERE p.part_id = q.target AND 'msg_' || m.message_id = ANY(%(ids)s)
    ))
"""
_QUARANTINES = f"q.conversation_id = %(conversation)s AND q.reason <> '' AND (%(whole)s OR {_THINGS})"
_GRANTS = """
    g.question <> '' AND EXISTS (
        SELECT FROM unnest(g.item_ids) AS asked(id) JOIN unnest(%(ids)s::text[]) AS erased(id) USING (id)
    )
"""
_UPLOADS = """
    u.conversation_id = %(conversation)s AND (u.file_name IS NOT NULL OR u.mime_type IS NOT NULL)
    AND (%(whole)s OR u.file_id = ANY(%(ids)s))
"""
_INSTRUCTED = "coalesce(policy ->> 'summary_instructions', '') <> ''"
_COUNTS = f"""
    SELECT (c.title IS NOT NULL)::int, (c.metadata <> '{{}}')::int,
           (coalesce(c.overrides ->> 'summary_instructions', '') <> '')::int,
           (SELECT count(*) FROM compaction_plans p WHERE p.conversation_id = c.conversation_id AND {_INSTRUCTED}),
           (SELECT count(*) FROM compaction_boundaries b
            WHERE b.conversation_id = c.conversation_id AND b.metadata <> '{{}}'),
           (SELECT count(*) FROM quarantines q WHERE {_QUARANTINES}),
           (SELECT count(*) FROM quarantines q WHERE q.conversation_id = c.conversation_id AND q.reason <> ''),
           (SELECT count(*) FROM grants g WHERE g.workspace_id = c.workspace_id AND {_GRANTS}),
           (SELECT count(*) FROM uploads u WHERE {_UPLOADS}),
           (SELECT count(*) FROM uploads u WHERE u.conversation_id = c.conversation_id AND u.file_id IS NULL),
           (SELECT count(*) FROM compaction_boundaries b WHERE b.conversation_id = c.conversation_id)
    FROM conversations c WHERE c.conversation_id = %(conversation)s
"""
_OF_THE_WHOLE = (
    """
    UPDATE conversations SET title = NULL, metadata = '{}', overrides = overrides - 'summary_instructions'
    WHERE conversation_id = %(conversation)s
    """,
    "UPDATE compaction_boundaries SET metadata = '{}' WHERE conversation_id = %(conversation)s",
    f"""
    UPDATE compaction_plans SET policy = policy || '{{"summary_instructions": ""}}'
    WHERE conversation_id = %(conversation)s AND {_INSTRUCTED}
    """,
    """
    UPDATE repair_steps SET before = '{}', after = '{}', undo = NULL WHERE conversation_id = %(conversation)s
    """,
)
_OF_WHAT_IS_NAMED = (
    f"UPDATE quarantines q SET reason = '' WHERE {_QUARANTINES}",
    f"""
    UPDATE grants g SET question = '' FROM conversations c
    WHERE c.conversation_id = %(conversation)s AND g.workspace_id = c.workspace_id AND {_GRANTS}
    """,
    f"UPDATE uploads u SET file_name = NULL, mime_type = NULL WHERE {_UPLOADS}",
)


def texts_elsewhere(conversation_id: int, *, is_whole: bool, ids: Sequence[str]) -> tuple[TextElsewhere, ...]:
    """Where else there are words: those that go along with this erasure, and those that somebody has to look at."""
    [counts] = rows(_COUNTS, _values(conversation_id, is_whole, ids))
    title, metadata, instructions, plans, of_boundaries, reasons, all_reasons, questions, *others = counts
    named, unfinished, boundaries = others
    found = (
        TextElsewhere("title of the conversation", title, is_whole),
        TextElsewhere("metadata of the conversation", metadata, is_whole),
        TextElsewhere("summary_instructions of the conversation", instructions, is_whole),
        TextElsewhere("summary_instructions kept with a plan", plans, is_whole),
        TextElsewhere("metadata of a boundary", of_boundaries, is_whole),
        TextElsewhere("reason of a quarantine", reasons, True),
        TextElsewhere("reason of a quarantine of something else", all_reasons - reasons, False),
        TextElsewhere("question of a grant", questions, True),
        TextElsewhere("file name of an upload", named, True),
        TextElsewhere("unfinished upload", unfinished, False),
        TextElsewhere("host_reference of a boundary", boundaries, False),
        TextElsewhere("session_id of the conversation", 1, False),
    )
    return tuple(each for each in found if each.count)


def erase_elsewhere(conversation_id: int, *, is_whole: bool, ids: Sequence[str]) -> None:
    """Take away the words that go along, in the transaction of the erasure."""
    statements = (*(_OF_THE_WHOLE if is_whole else ()), *_OF_WHAT_IS_NAMED)
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement, _values(conversation_id, is_whole, ids))


def _values(conversation_id: int, is_whole: bool, ids: Sequence[str]) -> dict[str, Any]:
    return {"conversation": conversation_id, "whole": is_whole, "ids": list(ids)}
