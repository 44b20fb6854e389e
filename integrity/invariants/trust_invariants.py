"""What left its row is where it was laid, and left by an act that is on record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conversations.cold_storage.cold_texts import Block, WhatIsLeft, blocks_of
from conversations.content import hashing
from conversations.models import PART_COLUMNS
from conversations.sql import array, rows
from conversations.store.read import files_of, messages_of, record_hash_of
from conversations.types import PartRecord
from integrity.invariants.invariant import Found, counted, invariant, violations
from integrity.types import Finding, Severity

_POINTING = """
    SELECT message_id, metadata_hash, chained_parts, record_hash FROM messages
    WHERE cold_block_id = %s AND erased_by_id IS NULL ORDER BY seq
"""
_SEALS = "SELECT part_id, part_hash FROM message_parts WHERE message_id = ANY(%s)"


@invariant(Severity.CRITICAL)
def cold_messages_point_at_their_block(conversation_ids: Sequence[int]) -> Found:
    """Every cold message points at a block of its stretch of its conversation, and every block is pointed at."""
    return violations(
        """
        SELECT m.conversation_id, 'msg_' || m.message_id,
               format('is not in the stretch of cold block %%s', m.cold_block_id)
        FROM messages m LEFT JOIN cold_blocks b USING (cold_block_id)
        WHERE m.conversation_id = ANY(%(ids)s) AND m.cold_block_id IS NOT NULL
          AND (b.conversation_id = m.conversation_id AND m.seq BETWEEN b.first_seq AND b.last_seq) IS NOT TRUE
        UNION ALL
        SELECT b.conversation_id, 'cold_' || b.cold_block_id,
               format('%%s messages point at it, which holds %%s', count(m.message_id), b.message_count)
        FROM cold_blocks b LEFT JOIN messages m USING (cold_block_id)
        WHERE b.conversation_id = ANY(%(ids)s)
        GROUP BY b.cold_block_id HAVING count(m.message_id) NOT BETWEEN 1 AND b.message_count
        """,
        conversation_ids,
    )


@invariant(Severity.CRITICAL, reads_texts=True)
def cold_texts_match_their_hashes(conversation_ids: Sequence[int]) -> Found:
    """Every cold block holds the bytes that were packed, and in them every cold message as it was hashed."""
    return counted(finding for block in blocks_of(conversation_ids) for finding in _damaged(block))


def _damaged(block: Block) -> Iterator[Finding]:
    sealed = {message_id: seals for message_id, *seals in rows(_POINTING, [block.cold_block_id])}
    if block.problem:
        yield Finding(block.conversation_id, f"cold_{block.cold_block_id}", block.problem)
    for message_id in sealed.keys() - block.messages.keys():
        yield Finding(
            block.conversation_id, f"msg_{message_id}", f"its text is not in cold block {block.cold_block_id}"
        )
    readable = [message_id for message_id in sealed if message_id in block.messages]
    part_seals = {part_id: bytes(seal) for part_id, seal in rows(_SEALS, [array(readable)])} if readable else {}
    files = files_of(readable) if readable else {}
    # Of a part whose text is not where it should be, the hash will not match; what is damaged is told of its block.
    for message in messages_of(readable, cold=WhatIsLeft(tell=lambda damage: None)):
        metadata_hash, chained, record_hash = sealed[message.message_id]
        is_whole = (
            hashing.content_hash(message.content).hex() == message.content_hash
            and hashing.metadata_hash(message.metadata) == (metadata_hash and bytes(metadata_hash))
            and all(_hash_of(part) == part_seals[part.part_id] for part in message.parts)
        )
        if not is_whole:
            yield Finding(message.conversation_id, message.id, "its cold text is not what was hashed")
            continue
        needed = files.get(message.message_id, [])
        if record_hash and record_hash_of(message, chained_parts=chained, files=needed) != bytes(record_hash):
            yield Finding(
                message.conversation_id,
                message.id,
                "its key, its tokens, the order of its JSON keys or its files are not what was sealed",
            )


def _hash_of(part: PartRecord) -> bytes:
    values = {name: getattr(part, name) for name in PART_COLUMNS}
    return hashing.part_hash(values)


@invariant(Severity.CRITICAL)
def texts_leave_by_recorded_acts(conversation_ids: Sequence[int]) -> Found:
    """What is erased, and what is cold, is so by an act in the audit log."""
    return violations(
        """
        WITH erased AS (
            SELECT conversation_id, 'msg_' || message_id AS id, erased_by_id
            FROM messages WHERE conversation_id = ANY(%(ids)s) AND erased_by_id IS NOT NULL
            UNION ALL
            SELECT conversation_id, summary_id, erased_by_id
            FROM summaries WHERE conversation_id = ANY(%(ids)s) AND erased_by_id IS NOT NULL
            UNION ALL
            SELECT conversation_id, file_id, erased_by_id
            FROM large_files WHERE conversation_id = ANY(%(ids)s) AND erased_by_id IS NOT NULL
        )
        SELECT e.conversation_id, e.id, format('says that act %%s erased it, which is none', e.erased_by_id)
        FROM erased e LEFT JOIN audit_log a ON a.audit_id = e.erased_by_id
        -- What a ledger says was erased came without its texts.
        WHERE coalesce(a.act, '') NOT IN ('erase', 'import_ledger')
           OR a.conversation_id IS DISTINCT FROM e.conversation_id
        UNION ALL
        SELECT m.conversation_id, 'msg_' || m.message_id, format('is none of those that act %%s erased', m.erased_by_id)
        FROM messages m
        JOIN audit_log a ON a.audit_id = m.erased_by_id AND a.act = 'erase'
        LEFT JOIN (
            SELECT e.act_id, unnest(e.message_ids) AS message_id FROM erasures e WHERE e.conversation_id = ANY(%(ids)s)
        ) named ON named.act_id = a.audit_id AND named.message_id = m.message_id
        WHERE m.conversation_id = ANY(%(ids)s) AND named.message_id IS NULL
        UNION ALL
        SELECT b.conversation_id, 'cold_' || b.cold_block_id, 'was archived by no act'
        FROM cold_blocks b
        WHERE b.conversation_id = ANY(%(ids)s) AND NOT EXISTS (
            SELECT FROM audit_log a WHERE a.conversation_id = b.conversation_id AND a.act = 'archive')
        """,
        conversation_ids,
    )


@invariant(Severity.WARNING)
def quarantines_hold_what_there_is(conversation_ids: Sequence[int]) -> Found:
    """Every open quarantine is of a row of its conversation."""
    return violations(
        """
        SELECT q.conversation_id, q.target,
               format('is quarantined in conversation %%s and not there', q.conversation_id)
        FROM quarantines q
        WHERE q.conversation_id = ANY(%(ids)s) AND q.released_at IS NULL
          AND CASE split_part(q.target, '_', 1)
              WHEN 'msg' THEN NOT EXISTS (
                  SELECT FROM messages m
                  WHERE m.conversation_id = q.conversation_id AND 'msg_' || m.message_id = q.target)
              WHEN 'sum' THEN NOT EXISTS (
                  SELECT FROM summaries s
                  WHERE s.conversation_id = q.conversation_id AND s.summary_id = q.target)
              WHEN 'part' THEN NOT EXISTS (
                  SELECT FROM message_parts p JOIN messages m USING (message_id)
                  WHERE m.conversation_id = q.conversation_id AND p.part_id = q.target)
              WHEN 'file' THEN NOT EXISTS (
                  SELECT FROM large_files f
                  WHERE f.conversation_id = q.conversation_id AND f.file_id = q.target)
              ELSE false END
        """,
        conversation_ids,
    )
