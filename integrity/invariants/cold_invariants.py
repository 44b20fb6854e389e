"""Invariants of archived and erased texts, and of quarantines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from conversations.cold_storage.cold_texts import LONGEST_URL, messages_in, readable_texts
from conversations.content import hashing
from conversations.models import ColdBlock
from conversations.sql import array, load, rows
from conversations.store.read import files_of, messages_of, record_hash_of
from conversations.types import PART_COLUMNS, PartRecord
from integrity.invariants.hash_invariants import ALTERED_RECORD
from integrity.invariants.invariant import Found, in_sql, invariant, violations
from integrity.types import Finding, Severity

FILE = "integrity/cold_invariants.sql"
_SQL = load(FILE)
_MESSAGES_IN = """
    SELECT message_id, metadata_hash, chained_parts, record_hash FROM messages
    WHERE cold_block_id = %s AND erased_by_id IS NULL ORDER BY seq
"""
_PART_HASHES = "SELECT part_id, part_hash FROM message_parts WHERE message_id = ANY(%s)"

in_sql(
    FILE,
    Severity.CRITICAL,
    {"cold_messages_point_at_their_block": "Every cold message names a block of its range, and every block is in use."},
)


@invariant(Severity.CRITICAL)
def cold_texts_match_their_hashes(conversation_ids: Sequence[int]) -> Iterator[Finding]:
    """Every cold block and the cold messages in it match their hashes."""
    blocks = ColdBlock.objects.filter(conversation_id__in=conversation_ids)
    for block in blocks.order_by("conversation_id", "first_seq", "cold_block_id").iterator(chunk_size=1):
        yield from _damaged(block)


def _damaged(block: ColdBlock) -> Iterator[Finding]:
    stored = {message_id: hashes for message_id, *hashes in rows(_MESSAGES_IN, [block.cold_block_id])}
    held = messages_in(block.packed, block.packed_hash)
    if isinstance(held, str):
        yield Finding(block.conversation_id, f"cold_{block.cold_block_id}", held)
        held = {}
    for message_id in stored.keys() - held.keys():
        detail = f"its text is missing from cold block {block.cold_block_id}"
        yield Finding(block.conversation_id, f"msg_{message_id}", detail)
    readable = [message_id for message_id in stored if message_id in held]
    part_hashes = {id: bytes(part_hash) for id, part_hash in rows(_PART_HASHES, [array(readable)])} if readable else {}
    files = files_of(readable) if readable else {}
    # If a part's text is missing from a readable block, the part does not match its hash.
    for message in messages_of(readable, cold=readable_texts()):
        metadata_hash, chained, record_hash = stored[message.message_id]
        is_whole = (
            hashing.content_hash(message.content).hex() == message.content_hash
            and hashing.metadata_hash(message.metadata) == (metadata_hash and bytes(metadata_hash))
            and all(_hash_of(part) == part_hashes[part.part_id] for part in message.parts)
        )
        needed = files.get(message.message_id, [])
        if not is_whole:
            yield Finding(message.conversation_id, message.id, "its cold text does not match its hashes")
        elif record_hash and record_hash_of(message, chained_parts=chained, files=needed) != bytes(record_hash):
            yield Finding(message.conversation_id, message.id, ALTERED_RECORD)


def _hash_of(part: PartRecord) -> bytes:
    return hashing.part_hash({name: getattr(part, name) for name in PART_COLUMNS})


in_sql(
    FILE,
    Severity.CRITICAL,
    {"texts_leave_by_recorded_acts": "Every erased or cold text was erased or archived by an act in the audit log."},
)
in_sql(
    FILE, Severity.WARNING, {"quarantines_hold_what_there_is": "Every open quarantine is of a row of its conversation."}
)
in_sql(
    FILE,
    Severity.CRITICAL,
    {"emptied_rows_hold_no_text": "No row that is erased or cold holds text."},
    longest_url=LONGEST_URL,
)


@invariant(Severity.ERROR)
def vectors_leave_with_their_texts(conversation_ids: Sequence[int]) -> Found:
    """No message that is erased, cold or quarantined has vectors."""
    tables = [table for (table,) in rows(_SQL["vector_tables"])]
    return sum((violations(_SQL["vectors_left"].format(table=table), conversation_ids) for table in tables), Found())
