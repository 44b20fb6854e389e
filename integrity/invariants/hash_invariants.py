"""What is stored is, bit for bit, what was said."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from conversations.content import hashing
from conversations.content.flattening import searchable
from conversations.content.lossless_values import storable
from conversations.store.read import parts_of
from conversations.types import PartRecord
from integrity.invariants.invariant import Found, counted, invariant, streamed, violations
from integrity.types import Finding, Severity

_EXACT_MESSAGES = """
    SELECT conversation_id, message_id, content, exact, content_hash, chained_parts
    FROM messages
    WHERE conversation_id = ANY(%(ids)s) AND exact IS NOT NULL AND cold_block_id IS NULL AND erased_by_id IS NULL
    ORDER BY conversation_id, message_id
"""
_METADATA = """
    SELECT conversation_id, message_id, metadata::text, exact, metadata_hash
    FROM messages
    WHERE conversation_id = ANY(%(ids)s) AND (metadata <> '{}' OR metadata_hash IS NOT NULL)
      AND cold_block_id IS NULL AND erased_by_id IS NULL
    ORDER BY conversation_id, message_id
"""


@invariant(Severity.CRITICAL, reads_texts=True)
def contents_match_their_hashes(conversation_ids: Sequence[int]) -> Found:
    """Every message's content_hash is the SHA-256 of its content's bytes."""
    stored_as_said = violations(
        """
        SELECT conversation_id, 'msg_' || message_id, 'its content is not what was hashed'
        FROM messages
        WHERE conversation_id = ANY(%(ids)s) AND exact IS NULL AND cold_block_id IS NULL AND erased_by_id IS NULL
          AND sha256(convert_to(content, 'UTF8')) <> content_hash
        """,
        conversation_ids,
    )
    return stored_as_said + counted(_altered_exact_contents(conversation_ids))


def _altered_exact_contents(conversation_ids: Sequence[int]) -> Iterator[Finding]:
    """Messages whose exact values stand beside their columns, for they hold what the database cannot even parse."""
    for conversation_id, message_id, content, exact, content_hash, chained in streamed(
        _EXACT_MESSAGES, conversation_ids
    ):
        if not exact or exact.keys() - {"content", "metadata"}:
            yield Finding(conversation_id, f"msg_{message_id}", "its exact values are of no column")
            continue
        said = exact.get("content", content)
        if hashing.content_hash(said) != bytes(content_hash):
            yield Finding(conversation_id, f"msg_{message_id}", "its exact content is not what was hashed")
        elif content != storable(said) and content != storable(searchable(said, _parts_given(message_id, chained))):
            yield Finding(
                conversation_id, f"msg_{message_id}", "its searchable content does not stand for what was said"
            )


def _parts_given(message_id: int, chained: int) -> list[PartRecord]:
    """The parts that a message came with."""
    return [part for part in parts_of([message_id])[message_id] if part.ordinal < chained]


@invariant(Severity.CRITICAL, reads_texts=True)
def metadata_match_their_hashes(conversation_ids: Sequence[int]) -> Found:
    """Every message's metadata_hash is the SHA-256 of its metadata, where it has any."""
    return counted(_altered_metadata(conversation_ids))


def _altered_metadata(conversation_ids: Sequence[int]) -> Iterator[Finding]:
    for conversation_id, message_id, metadata, exact, sealed in streamed(_METADATA, conversation_ids):
        said = (exact or {}).get("metadata", json.loads(metadata))
        if hashing.metadata_hash(said) != (None if sealed is None else bytes(sealed)):
            yield Finding(conversation_id, f"msg_{message_id}", "its metadata are not what was hashed")


@invariant(Severity.CRITICAL)
def entries_match_their_hashes(conversation_ids: Sequence[int]) -> Found:
    """Every message's entry_hash seals its role, author, content and the parts that it came with."""
    return violations(
        """
        WITH entries AS (
            SELECT m.conversation_id, m.message_id, m.role, m.author, m.entry_hash, m.erased_by_id,
                   m.content_hash || coalesce(string_agg(p.part_hash, ''::bytea ORDER BY p.ordinal), '') AS said
            FROM messages m
            LEFT JOIN message_parts p ON p.message_id = m.message_id AND p.ordinal < m.chained_parts
            WHERE m.conversation_id = ANY(%(ids)s)
            GROUP BY m.message_id
        )
        SELECT conversation_id, 'msg_' || message_id, 'its role, author, content or parts are not what was sealed'
        FROM entries
        WHERE CASE WHEN erased_by_id IS NULL
              THEN entry_hash <> sha256(
                  convert_to(role::text || E'\\n' || coalesce(author, '') || E'\\n', 'UTF8') || said
              )
              -- An erasure takes the author, and a hash that does not match proves nothing. The hash of a message that
              -- had no author still tells its role: only one of them matches.
              ELSE EXISTS (
                  SELECT FROM unnest(enum_range(role)) AS other(role)
                  WHERE other.role <> entries.role
                    AND entry_hash = sha256(convert_to(other.role::text || E'\\n\\n', 'UTF8') || said)
              ) END
        """,
        conversation_ids,
    )


@invariant(Severity.CRITICAL)
def chains_are_unbroken(conversation_ids: Sequence[int]) -> Found:
    """Every message's chain_hash seals its entry, metadata and times together with the message before it."""
    return violations(
        """
        SELECT conversation_id, 'msg_' || message_id, format('message %%s does not follow from the one before it', seq)
        FROM (
            SELECT conversation_id, message_id, seq, chain_hash,
                   lcm_next_link(lag(chain_hash) OVER in_order, ''::bytea, entry_hash, metadata_hash, record_hash,
                                 created_at, recorded_at) AS link
            FROM messages WHERE conversation_id = ANY(%(ids)s)
            WINDOW in_order AS (PARTITION BY conversation_id ORDER BY seq, message_id)
        ) AS links
        WHERE chain_hash <> link
        """,
        conversation_ids,
    )


@invariant(Severity.CRITICAL, reads_texts=True)
def summaries_match_their_hashes(conversation_ids: Sequence[int]) -> Found:
    """Every summary's summary_hash seals its text together with the hashes of its sources, in order."""
    return violations(
        """
        WITH sources AS (
            SELECT l.summary_id, 0 AS kind, l.ordinal, encode(m.content_hash, 'hex') AS hash
            FROM summaries s JOIN summary_messages l USING (summary_id) JOIN messages m USING (message_id)
            WHERE s.conversation_id = ANY(%(ids)s)
            UNION ALL
            SELECT p.summary_id, 1, p.ordinal, encode(source.summary_hash, 'hex')
            FROM summaries s JOIN summary_parents p USING (summary_id)
            JOIN summaries source ON source.summary_id = p.parent_summary_id
            WHERE s.conversation_id = ANY(%(ids)s)
        ), told AS (
            SELECT summary_id, string_agg(hash, ',' ORDER BY kind, ordinal, hash) AS hashes
            FROM sources GROUP BY summary_id
        )
        SELECT s.conversation_id, s.summary_id, 'its text or its sources are not what was sealed'
        FROM summaries s LEFT JOIN told USING (summary_id)
        WHERE s.conversation_id = ANY(%(ids)s) AND s.erased_by_id IS NULL
          AND s.summary_hash <> sha256(convert_to(coalesce(told.hashes, '') || '|' || s.content, 'UTF8'))
        """,
        conversation_ids,
    )
