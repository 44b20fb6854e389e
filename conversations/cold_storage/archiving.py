"""Move texts to the cold tier and back: one range of messages per transaction.

The transaction writes an entry into the audit log, stores the block, and empties the rows. It then reads the messages
the usual way, from the stored block, and compares every value with the original. Whenever the process dies, a range
has been moved completely, or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import F

from conversations.audit import Act, AuditLog
from conversations.cold_storage.cold_texts import (
    LONGEST_URL,
    MARK,
    PART_TEXTS,
    ColdMessage,
    ColdTexts,
    packed,
    packed_hash,
)
from conversations.content import hashing
from conversations.errors import Conflict
from conversations.models import ColdBlock, Conversation, Message, MessagePart
from conversations.sql import array, execute, load, rows
from conversations.store.derived_context import lock_conversations
from conversations.store.read import messages_of
from conversations.types import PART_COLUMNS, MessageRecord

# The limits of one block, unless a single message is larger: enough similar text to compress well, and little enough to
# unpack to read one message.
MOST_MESSAGES = 100
MOST_BYTES = 1_000_000

SQL = load("conversations/cold_storage.sql")


class NotTheSame(Conflict):
    """The texts read back differ from the original; the transaction is rolled back."""

    code = "cold_copy_differs"


@dataclass(frozen=True)
class Moved:
    """The result of moving a range: its last seq, and its size in rows and block.

    `damaged` lists messages that do not match their hashes. They stay in their rows, for an integrity check to find.
    """

    last_seq: int
    messages: int
    bytes_before: int
    bytes_packed: int
    damaged: tuple[int, ...] = ()


@transaction.atomic
def archive_stretch(conversation_id: int, *, after_seq: int, log: AuditLog) -> Moved | None:
    """Move the next range of hot messages after `after_seq`; None if there is none.

    The caller holds the compaction lock. Raises NotTheSame, and moves nothing, if the texts read back differ.
    """
    # Before the messages' rows, as every writer does.
    lock_conversations([conversation_id])
    bounds = {"most_messages": MOST_MESSAGES, "most_bytes": MOST_BYTES}
    found = rows(SQL["next_stretch"], {"conversation_id": conversation_id, "after_seq": after_seq, **bounds})
    if not found:
        return None
    sizes = {message_id: size for message_id, _, size in found}
    taken, before = _texts(list(sizes)), messages_of(list(sizes))
    damaged = tuple(each.message_id for each in before if not taken.is_as_hashed(each))
    whole = [each for each in before if each.message_id not in damaged]
    _, last_seq, _ = found[-1]
    if not whole:
        return Moved(last_seq, 0, 0, 0, damaged)
    ids = [each.message_id for each in whole]
    block = packed(taken.messages[message_id] for message_id in ids)
    moved = Moved(last_seq, len(ids), sum(sizes[message_id] for message_id in ids), len(block), damaged)
    log.record(
        Act.ARCHIVE,
        conversation_id=conversation_id,
        target=f"seq {whole[0].seq} to {whole[-1].seq}",
        detail={"messages": len(ids), "packed_hash": packed_hash(block).hex()},
    )
    row = _store(conversation_id, block, [each.seq for each in whole], bytes_before=moved.bytes_before)
    part_ids = [part_id for message_id in ids for part_id in taken.messages[message_id].parts]
    if execute(SQL["empty_messages"], [row.pk, ids]) != len(ids):
        raise NotTheSame("Some of these messages were archived or erased at this moment.")
    mark = json.dumps({MARK: row.pk})
    execute(SQL["empty_parts"], {"longest_url": LONGEST_URL, "mark": mark, "part_ids": part_ids})
    _require_same(whole)
    Conversation.objects.filter(pk=conversation_id).update(cold_messages=F("cold_messages") + len(ids))
    return moved


@transaction.atomic
def thaw_block(conversation_id: int, *, log: AuditLog) -> Moved | None:
    """Move the texts of the conversation's first block back into their rows.

    Returns None if the conversation has no block. The caller holds the compaction lock. Raises NotTheSame if the texts
    read back differ, or ColdBlockDamaged. In both cases nothing is moved.
    """
    lock_conversations([conversation_id])
    row = ColdBlock.objects.filter(conversation_id=conversation_id).order_by("first_seq", "cold_block_id").first()
    if row is None:
        return None
    texts = _opened(row)
    before = messages_of(list(texts))
    log.record(
        Act.THAW,
        conversation_id=conversation_id,
        target=f"seq {row.first_seq} to {row.last_seq}",
        detail={"messages": len(texts), "packed_hash": bytes(row.packed_hash).hex()},
    )
    messages = [
        {"message_id": each.message_id, "content": each.content, "metadata": each.metadata, "exact": each.exact}
        for each in texts.values()
    ]
    parts = [{"part_id": part_id, **values} for each in texts.values() for part_id, values in each.parts.items()]
    if execute(SQL["fill_messages"], [json.dumps(messages), row.pk]) != len(messages):
        raise NotTheSame(f"Cold block {row.pk} holds messages whose rows do not name it.")
    execute(SQL["fill_parts"], [json.dumps(parts)])
    _require_same(before)
    row.delete()
    Conversation.objects.filter(pk=conversation_id).update(cold_messages=F("cold_messages") - len(messages))
    return Moved(row.last_seq, len(messages), row.bytes_before, len(row.packed))


def repack_without(conversation_id: int, *, message_ids: Collection[int], block_ids: Collection[int]) -> int:
    """Repack these blocks without these messages; return how many were left out.

    An erasure calls this in its transaction, after it has removed the block's id from the rows of these messages.
    """
    left = 0
    for row in ColdBlock.objects.filter(conversation_id=conversation_id, pk__in=block_ids).order_by("first_seq"):
        texts = _opened(row)
        kept = {message_id: each for message_id, each in texts.items() if message_id not in message_ids}
        if len(kept) == len(texts):
            continue
        if kept:
            _repack(row, kept)
        row.delete()
        left += len(texts) - len(kept)
    Conversation.objects.filter(pk=conversation_id).update(cold_messages=F("cold_messages") - left)
    return left


def _repack(row: ColdBlock, kept: Mapping[int, ColdMessage]) -> None:
    before = messages_of(list(kept))
    block = packed(kept.values())
    share = row.bytes_before * len(kept) // row.message_count
    new = _store(row.conversation_id, block, [each.seq for each in before], bytes_before=share)
    Message.objects.filter(pk__in=list(kept)).update(cold_block=new)
    part_ids = [part_id for each in kept.values() for part_id in each.parts]
    MessagePart.objects.filter(pk__in=part_ids).update(exact={MARK: new.pk})
    _require_same(before)


@dataclass(frozen=True)
class _Taken:
    """The texts of a range of messages as the rows hold them, and their hashes."""

    messages: Mapping[int, ColdMessage]
    metadata_hashes: Mapping[int, bytes | None]
    part_hashes: Mapping[str, bytes]

    def is_as_hashed(self, message: MessageRecord) -> bool:
        """Whether content, metadata and parts match their hashes."""
        return (
            hashing.content_hash(message.content).hex() == message.content_hash
            and hashing.metadata_hash(message.metadata) == self.metadata_hashes[message.message_id]
            and all(
                hashing.part_hash({name: getattr(part, name) for name in PART_COLUMNS})
                == self.part_hashes.get(part.part_id)
                for part in message.parts
            )
        )


def _texts(message_ids: Sequence[int]) -> _Taken:
    parts: dict[int, dict[str, dict[str, Any]]] = {}
    part_hashes: dict[str, bytes] = {}
    for message_id, part_id, part_hash, is_appended, *values in rows(
        SQL["texts_of_parts"], {"longest_url": LONGEST_URL, "message_ids": array(message_ids)}
    ):
        part_hashes[part_id] = bytes(part_hash)
        texts = {name: value for name, value in zip(PART_TEXTS, values, strict=True) if value is not None}
        if is_appended and texts:
            parts.setdefault(message_id, {})[part_id] = texts
    messages, metadata_hashes = {}, {}
    for message_id, content, metadata, exact, stored_hash in rows(SQL["texts_of_messages"], [array(message_ids)]):
        messages[message_id] = ColdMessage(message_id, content, metadata, exact, parts.get(message_id, {}))
        metadata_hashes[message_id] = None if stored_hash is None else bytes(stored_hash)
    return _Taken(messages, metadata_hashes, part_hashes)


def _store(conversation_id: int, block: bytes, seqs: Iterable[int], *, bytes_before: int) -> ColdBlock:
    ordered = sorted(seqs)
    return ColdBlock.objects.create(
        conversation_id=conversation_id,
        first_seq=ordered[0],
        last_seq=ordered[-1],
        message_count=len(ordered),
        packed=block,
        packed_hash=packed_hash(block),
        bytes_before=bytes_before,
    )


def _opened(row: ColdBlock) -> dict[int, ColdMessage]:
    texts = ColdTexts()
    texts.read([row.pk])
    return texts.blocks[row.pk]


def _require_same(before: Sequence[MessageRecord]) -> None:
    """Read these messages the usual way, and compare them with the originals."""
    after = messages_of([each.message_id for each in before])
    # Python compares dictionaries without regard to the order of their keys.
    if after != list(before) or _key_orders(after) != _key_orders(before):
        raise NotTheSame("The texts read back differ from the original, so nothing was moved. Check the conversation.")


def _key_orders(messages: Sequence[MessageRecord]) -> list[str | None]:
    return [
        hashing.key_order(each.metadata, [(part.tool_input, part.metadata) for part in each.parts]) for each in messages
    ]
