"""A message's record and the files that it needs are what was sealed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from conversations.cold_storage.cold_texts import WhatIsLeft
from conversations.content import hashing
from conversations.content.large_texts.file_references import misplaced
from conversations.fast.records import every_field
from conversations.sql import rows
from conversations.store.read import files_of, messages_of
from integrity.invariants.invariant import Found, counted, invariant, streamed_in_portions, violations
from integrity.types import Finding, Severity

# The canonical JSON of a record without files, and with all JSON keys in order, put together by the database. A hash
# that fits proves such a record, as long as the order of keys cannot have been altered: without `exact`, it follows
# from the values, which hashes of their own seal. All others are sealed anew by us.
_CANONICAL = """
    '{' || coalesce('"idempotency_key":' || to_json(m.idempotency_key)::text || ',', '')
    || '"token_count":' || m.token_count || ',"token_counter":' || to_json(m.token_counter)::text || '}'
"""
# Those of cold messages are looked at where their texts are read. Of the others, no text is read here.
_UNPROVEN = f"""
    WITH sealed AS (
        SELECT conversation_id, message_id,
               exact IS NOT NULL OR record_hash <> sha256(convert_to({_CANONICAL}, 'UTF8')) AS is_unproven
        FROM messages m
        WHERE conversation_id = ANY(%(ids)s) AND record_hash IS NOT NULL AND cold_block_id IS NULL
          AND erased_by_id IS NULL
    ), unproven AS (
        SELECT message_id FROM sealed WHERE is_unproven
        UNION
        SELECT message_id FROM sealed JOIN message_parts p USING (message_id) WHERE p.exact IS NOT NULL
        UNION
        SELECT message_id FROM sealed JOIN file_references USING (message_id)
    )
    SELECT m.conversation_id, m.message_id, m.record_hash, m.idempotency_key, m.token_count, m.token_counter,
           m.metadata::text, m.exact,
           (SELECT json_agg(json_build_array(p.tool_input::text, p.metadata::text, p.exact::text)
                            ORDER BY p.ordinal)::text
            FROM message_parts p WHERE p.message_id = m.message_id AND p.ordinal < m.chained_parts)
    FROM unproven JOIN messages m USING (message_id)
    ORDER BY m.conversation_id, m.message_id
"""
_WITH_FILES = """
    SELECT message_id, chained_parts FROM messages m
    WHERE m.conversation_id = ANY(%(ids)s) AND erased_by_id IS NULL
      AND EXISTS (SELECT FROM file_references r WHERE r.message_id = m.message_id)
    ORDER BY conversation_id, message_id
"""
_SIZES = "SELECT file_id, byte_size FROM large_files WHERE file_id = ANY(%s)"


@invariant(Severity.CRITICAL, reads_texts=True)
def records_match_their_hashes(conversation_ids: Sequence[int]) -> Found:
    """Every record_hash seals a message's key, tokens, key order and files.

    Messages from before records were sealed have none.
    """
    return counted(_altered_records(conversation_ids))


def _altered_records(conversation_ids: Sequence[int]) -> Iterator[Finding]:
    for portion in streamed_in_portions(_UNPROVEN, conversation_ids):
        files = files_of(row[1] for row in portion)
        for conversation_id, message_id, seal, key, tokens, counter, metadata, exact, parts in portion:
            sealed = hashing.record_hash(
                idempotency_key=key,
                token_count=tokens,
                token_counter=counter,
                keys=hashing.key_order(
                    (exact or {}).get("metadata", json.loads(metadata)), map(_given, json.loads(parts or "[]"))
                ),
                files=files.get(message_id, []),
            )
            if sealed != bytes(seal):
                yield Finding(
                    conversation_id,
                    f"msg_{message_id}",
                    "its key, its tokens, the order of its JSON keys or its files are not what was sealed",
                )


def _given(texts: Sequence[str | None]) -> tuple[Any, Any]:
    """A part's tool_input and metadata, exactly."""
    tool_input, metadata, exact = (None if text is None else json.loads(text) for text in texts)
    exact = exact or {}
    return exact.get("tool_input", tool_input), exact.get("metadata", metadata)


@invariant(Severity.CRITICAL, reads_texts=True)
def references_lead_to_their_files(conversation_ids: Sequence[int]) -> Found:
    """Every file that a message needs is there, and its element in its place.

    Only the places that references name are looked at: anybody may quote what stands for a file.
    """
    return _lost_files(conversation_ids) + counted(_misplaced(conversation_ids))


def _lost_files(conversation_ids: Sequence[int]) -> Found:
    return violations(
        """
        SELECT m.conversation_id, 'msg_' || m.message_id,
               CASE WHEN f.file_id IS NULL THEN format('needs %%s, of which there is no row', r.file_id)
                    ELSE format('needs %%s, a file of another workspace', r.file_id) END
        FROM messages m
        JOIN file_references r USING (message_id)
        JOIN conversations c ON c.conversation_id = m.conversation_id
        LEFT JOIN large_files f USING (file_id)
        LEFT JOIN conversations owner ON owner.conversation_id = f.conversation_id
        WHERE m.conversation_id = ANY(%(ids)s) AND owner.workspace_id IS DISTINCT FROM c.workspace_id
        """,
        conversation_ids,
    )


def _misplaced(conversation_ids: Sequence[int]) -> Iterator[Finding]:
    for portion in streamed_in_portions(_WITH_FILES, conversation_ids):
        chained = dict(portion)
        ids = list(chained)
        files = files_of(ids)
        named = {entry[0] for entries in files.values() for entry in entries}
        sizes = dict(rows(_SIZES, [list(named)]))
        # A text that is not what was hashed, or cannot be read, is a finding of its own.
        for message in messages_of(ids, cold=WhatIsLeft(tell=lambda damage: None)):
            if hashing.content_hash(message.content).hex() != message.content_hash:
                continue
            parts = {p.ordinal: every_field(p) for p in message.parts if p.ordinal < chained[message.message_id]}
            for entry in files.get(message.message_id, []):
                wrong = entry[0] in sizes and misplaced(entry, message.content, parts, byte_size=sizes[entry[0]])
                if wrong:
                    yield Finding(message.conversation_id, message.id, wrong)
