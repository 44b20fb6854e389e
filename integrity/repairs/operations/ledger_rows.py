"""Rows of messages as they stand, and as a ledger says that they were: read, compared, and written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection
from django.db.models import F

from conversations.models import PART_COLUMNS, ColdBlock, Conversation
from conversations.sql import rows
from integrity.repairs.ledger_copies import Line

# What seals and places a message: a ledger's line is of this very message if all of it is the same.
SEALED = """
    SELECT seq, role::text, token_count, chained_parts, encode(content_hash, 'hex'), encode(entry_hash, 'hex'),
           encode(record_hash, 'hex'), encode(chain_hash, 'hex')
    FROM messages WHERE message_id = %s
"""
_TEXTS_OF_MESSAGE = """
    SELECT json_build_object('content', content, 'metadata', metadata::text, 'exact', exact::text, 'author', author,
                             'idempotency_key', idempotency_key, 'cold_block_id', cold_block_id)::text
    FROM messages WHERE message_id = %s
"""
_PART_VALUES = [name for name in PART_COLUMNS if name != "part_type"]
_PART_TYPES = {
    "patch_files": "text[]",
    **dict.fromkeys(("is_ignored", "is_synthetic", "compaction_auto"), "boolean"),
    "step_cost": "numeric",
    **dict.fromkeys(("step_tokens_in", "step_tokens_out"), "integer"),
}
AS_JSON = {"tool_input": "::jsonb", "metadata": "::jsonb"}
_TEXTS_OF_PARTS = f"""
    SELECT coalesce(json_agg(json_build_object('part_id', part_id, 'part_hash', encode(part_hash, 'hex'),
               'exact', exact::text,
               {", ".join(f"'{name}', {name}{'::text' if name in AS_JSON else ''}" for name in _PART_VALUES)}
           ) ORDER BY ordinal), '[]')::text
    FROM message_parts WHERE message_id = %s
"""
_FILL_MESSAGE = """
    UPDATE messages
    SET content = t.content, metadata = t.metadata::jsonb, exact = t.exact::json, author = t.author,
        idempotency_key = t.idempotency_key, cold_block_id = t.cold_block_id
    FROM json_to_record(%s) AS t(content text, metadata text, exact text, author text, idempotency_key text,
                                 cold_block_id bigint)
    WHERE message_id = %s
"""
_FILL_PARTS = f"""
    UPDATE message_parts part
    SET exact = t.exact::json, {", ".join(f"{name} = t.{name}{AS_JSON.get(name, '')}" for name in _PART_VALUES)}
    FROM json_to_recordset(%s) AS t(
        part_id text, part_hash text, exact text,
        {", ".join(f"{name} {_PART_TYPES.get(name, 'text')}" for name in _PART_VALUES)}
    )
    WHERE part.part_id = t.part_id AND encode(part.part_hash, 'hex') = t.part_hash
"""
_FITS = """
    SELECT encode(lcm_next_link(
        (SELECT chain_hash FROM messages WHERE conversation_id = %(conversation_id)s AND seq = %(seq)s - 1),
        ''::bytea, decode(%(entry_hash)s, 'hex'), decode(%(metadata_hash)s, 'hex'), decode(%(record_hash)s, 'hex'),
        %(created_at)s::timestamptz, %(recorded_at)s::timestamptz), 'hex') = %(chain_hash)s
"""
# Rows that still name a lost message tell the number that it had.
_LOST_NUMBER = """
    SELECT message_id FROM (
        SELECT c.message_id FROM context_items c
        WHERE c.conversation_id = %(conversation_id)s AND c.ordinal = %(seq)s
        UNION ALL
        SELECT l.message_id FROM summary_messages l JOIN summaries s USING (summary_id)
        WHERE s.conversation_id = %(conversation_id)s AND (l.summary_id, l.ordinal) IN (
            SELECT summary_id, place FROM json_to_recordset(%(links)s) AS t(summary_id text, place integer))
    ) AS named
    WHERE message_id IS NOT NULL AND NOT EXISTS (SELECT FROM messages m WHERE m.message_id = named.message_id)
    LIMIT 1
"""


NUMBERED = """
    INSERT INTO messages (
        message_id, conversation_id, seq, role, content, token_count, created_at, recorded_at, author, idempotency_key,
        metadata, exact, token_counter, chained_parts, content_hash, entry_hash, metadata_hash, record_hash,
        chain_hash
    )
    OVERRIDING SYSTEM VALUE
    SELECT %(message_id)s, %(conversation_id)s, seq, role, content, token_count, created_at, recorded_at, author,
           idempotency_key, coalesce(metadata, '{}'), exact::json, token_counter, chained_parts,
           decode(content_hash, 'hex'), decode(entry_hash, 'hex'), decode(metadata_hash, 'hex'),
           decode(record_hash, 'hex'), decode(chain_hash, 'hex')
    FROM json_to_recordset(%(rows)s) AS given(
        seq bigint, role message_role, content text, token_count integer, created_at timestamptz,
        recorded_at timestamptz, author text, idempotency_key text, metadata jsonb, exact text, token_counter text,
        chained_parts integer, content_hash text, entry_hash text, metadata_hash text, record_hash text,
        chain_hash text
    )
"""


_OF_LINK = ("seq", "entry_hash", "metadata_hash", "record_hash", "created_at", "recorded_at", "chain_hash")
_LINK_AFTER = """
    SELECT chain_hash = lcm_next_link(decode(%(link)s, 'hex'), ''::bytea, entry_hash, metadata_hash, record_hash,
                                      created_at, recorded_at)
    FROM messages WHERE conversation_id = %(conversation_id)s AND seq = %(seq)s
"""


SOURCE_HASHES = """
    SELECT hash FROM (
        SELECT 0 AS kind, l.ordinal, encode(m.content_hash, 'hex') AS hash
        FROM summary_messages l JOIN messages m USING (message_id) WHERE l.summary_id = %(id)s
        UNION ALL
        SELECT 1, p.ordinal, encode(source.summary_hash, 'hex')
        FROM summary_parents p JOIN summaries source ON source.summary_id = p.parent_summary_id
        WHERE p.summary_id = %(id)s
    ) AS sources ORDER BY kind, ordinal
"""


def lost_number(conversation_id: int, line: Line) -> int | None:
    # Where a summary of ours links to a message that is gone, its place among the sources tells which one that was.
    links = [
        {"summary_id": summary_id, "place": line["seq"] - first}
        for summary_id, first in rows(_LEAVES_OVER, {"conversation_id": conversation_id, "seq": line["seq"]})
    ]
    found = rows(_LOST_NUMBER, {"conversation_id": conversation_id, "seq": line["seq"], "links": json.dumps(links)})
    return int(found[0][0]) if found else None


# Leaves whose messages follow each other without a gap: there a place is a seq.
_LEAVES_OVER = """
    SELECT summary_id, first_seq FROM summaries
    WHERE conversation_id = %(conversation_id)s AND depth = 0 AND %(seq)s BETWEEN first_seq AND last_seq
      AND source_count = last_seq - first_seq + 1
"""


def texts_of(message_id: int) -> str:
    return str(rows(_TEXTS_OF_MESSAGE, [message_id])[0][0])


def parts_of(message_id: int) -> str:
    return str(rows(_TEXTS_OF_PARTS, [message_id])[0][0])


def write(message_id: int, texts: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_FILL_MESSAGE, [json.dumps(texts), message_id])
        cursor.execute(_FILL_PARTS, [json.dumps(parts, default=str)])


def leave_block(conversation_id: int, block_id: int | None) -> None:
    """A message that was cold is hot again; a block that nobody points at any more has nothing to keep."""
    if block_id is not None:
        Conversation.objects.filter(pk=conversation_id).update(cold_messages=F("cold_messages") - 1)
        ColdBlock.objects.filter(pk=block_id, messages__isnull=True).delete()


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def fits_between(conversation_id: int, lines: Sequence[Line], chain_head: str) -> bool:
    """Whether the first of these follows from what is there, and what is there from the last."""
    first, last = lines[0], lines[-1]
    [(begins,)] = rows(_FITS, {"conversation_id": conversation_id, **{name: first.get(name) for name in _OF_LINK}})
    after = rows(_LINK_AFTER, {"conversation_id": conversation_id, "seq": last["seq"] + 1, "link": last["chain_hash"]})
    return bool(begins) and bool(after[0][0] if after else chain_head == last["chain_hash"])
