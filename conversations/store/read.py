"""Read stored messages as records, without model instances.

A page has up to a thousand messages; with model instances, each would be built twice.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from conversations.cold_storage.cold_texts import MARK, ColdTexts, cold_texts, is_cold, until_settled
from conversations.content import hashing
from conversations.content.large_texts.file_references import FileEntry, in_order
from conversations.fast.records import record
from conversations.models import Message
from conversations.sql import array, load, rows
from conversations.types import MessageRecord, PartRecord, PartType, Role

# The columns that most parts use. The others are NULL in most parts, and are read as one JSON array if any is not.
_USUAL = (
    "message_id", "ordinal", "part_id", "part_type", "text_content", "tool_call_id", "tool_name", "tool_status",
    "tool_input", "tool_output", "metadata"
)  # fmt: skip
_MESSAGE = (
    "message_id", "conversation_id", "seq", "role", "content", "token_count", "token_counter", "created_at",
    "content_hash", "chain_hash", "author", "idempotency_key", "metadata", "erased_by_id", "exact", "cold_block_id"
)  # fmt: skip
_UNUSUAL = tuple(name for name in PartRecord.__dataclass_fields__ if name not in _USUAL)

# Columns that are read as another type, which Python parses.
_READ_AS = {
    "created_at": "created_at::text",
    "content_hash": "encode(content_hash, 'hex')",
    "chain_hash": "encode(chain_hash, 'hex')",
    # As text, because the connection determines how jsonb is parsed.
    "metadata": "metadata::text",
    "tool_input": "tool_input::text",
    # As text, because JSON has no decimal numbers.
    "step_cost": "step_cost::text",
}


def seqs_of_keys(conversation_id: int, keys: Iterable[str]) -> dict[str, int]:
    """Return the seqs of stored messages, by idempotency key.

    Erased messages are found by their former keys.
    """
    keys_by_form = {form: key for key in keys for form in (key, hashing.erased_key(key))}
    stored = Message.objects.filter(conversation_id=conversation_id, idempotency_key__in=list(keys_by_form))
    return {keys_by_form[str(form)]: seq for form, seq in stored.values_list("idempotency_key", "seq")}


def erased_among(conversation_id: int, keys: Iterable[str]) -> set[str]:
    """Return those of the idempotency keys whose messages were erased."""
    keys_by_form = {hashing.erased_key(key): key for key in keys}
    erased = Message.objects.filter(conversation_id=conversation_id, idempotency_key__in=list(keys_by_form))
    return {keys_by_form[str(form)] for form in erased.values_list("idempotency_key", flat=True)}


def _columns(names: Sequence[str]) -> str:
    return ", ".join(_READ_AS.get(name, name) for name in names)


_SQL = load("conversations/messages.sql")
_BY_ID, _AFTER = (_SQL[name].format(columns=_columns(_MESSAGE)) for name in ("messages_by_id", "messages_after"))
# The subquery hides the number of messages from the planner, which would otherwise plan again for each number.
_PARTS = f"""SELECT {_columns(_USUAL)}, exact,
    CASE WHEN num_nonnulls({_columns(_UNUSUAL)}) > 0 THEN json_build_array({_columns(_UNUSUAL)})::text END AS more
    FROM message_parts WHERE message_id = ANY((SELECT %s)::bigint[])"""
_FILES = load("conversations/files.sql")["files_of_messages"]
ROLES = {role.value: role for role in Role}
PART_TYPES = {part_type.value: part_type for part_type in PartType}
# `json.loads` would also look for surrounding white space, which the database does not write.
_decode = json.JSONDecoder().raw_decode


def messages_of(message_ids: Sequence[int], *, cold: ColdTexts | None = None) -> list[MessageRecord]:
    """Read the messages with these ids, in this order; missing ones are left out."""
    if not message_ids:
        return []
    wanted = {"message_ids": array(message_ids)}
    found = until_settled(lambda: _read(rows(_BY_ID, wanted), cold))
    by_id = {message.message_id: message for message in found}
    return [by_id[message_id] for message_id in message_ids if message_id in by_id]


def messages_after(
    conversation_id: int, *, workspace_id: int | None, after_seq: int, limit: int
) -> list[MessageRecord]:
    """Read the messages of a conversation after `after_seq`, oldest first.

    Returns an empty list if the conversation is not in the workspace. `workspace_id` None means any workspace.
    """
    values = {"conversation_id": conversation_id, "workspace_id": workspace_id, "after_seq": after_seq, "limit": limit}
    return until_settled(lambda: _read(rows(_AFTER, values)))


def _read(found: Sequence[tuple[Any, ...]], cold: ColdTexts | None = None) -> list[MessageRecord]:
    cold = cold_texts((row[-1] for row in found), cold)
    parts = parts_of((row[0] for row in found), cold=cold) if found else {}
    messages = []
    for row in found:
        stored: dict[str, Any] = dict(zip(_MESSAGE, row, strict=True))
        message_id, exact, block_id = stored["message_id"], stored.pop("exact"), stored.pop("cold_block_id")
        if block_id is not None and cold is not None:
            texts = cold.message(block_id, message_id)
            stored["content"], stored["metadata"], exact = texts.content, texts.metadata, texts.exactly
        stored["role"] = ROLES[stored["role"]]
        stored["created_at"] = datetime.fromisoformat(stored["created_at"])
        stored["metadata"] = _decode(stored["metadata"])[0]
        stored["parts"] = tuple(parts.get(message_id, ()))
        if exact:
            stored.update(exact)
        messages.append(record(MessageRecord, stored))
    return messages


def parts_of(message_ids: Iterable[int], *, cold: ColdTexts | None = None) -> dict[int, list[PartRecord]]:
    """Read the parts of these messages, in order, with those that compaction added.

    `cold` has the blocks that were read already. Raises BlockGone: call this inside `cold_texts.until_settled`.
    """
    # Sorted here, by message and ordinal, as the server would sort complete rows with their texts.
    fetched = sorted(rows(_PARTS, [array(message_ids)]))
    # For most rows this checks a single value, `exact`.
    cold = cold_texts((row[-2][MARK] for row in fetched if row[-2] and is_cold(row[-2])), cold)
    found: dict[int, list[PartRecord]] = defaultdict(list)
    for *usual, exact, more in fetched:
        stored: dict[str, Any] = dict(zip(_USUAL, usual, strict=True))
        message_id = stored["message_id"]
        stored["part_type"] = PART_TYPES[stored["part_type"]]
        for name in ("tool_input", "metadata"):
            if stored[name] is not None:
                stored[name] = _decode(stored[name])[0]
        if more is not None:
            stored.update(_unusual(more))
        if cold is not None and is_cold(exact):
            texts, exact = cold.message(exact[MARK], message_id).values_of(stored["part_id"])
            if texts.get("patch_files") is not None:
                texts["patch_files"] = tuple(texts["patch_files"])
            stored.update(texts)
        if exact:
            stored.update(exact)
        found[message_id].append(record(PartRecord, stored))
    return found


def files_of(message_ids: Iterable[int]) -> dict[int, list[FileEntry]]:
    """Read the file entries of these messages; a missing file has no hash."""
    found: dict[int, list[FileEntry]] = defaultdict(list)
    for message_id, *entry in rows(_FILES, [array(message_ids)]):
        found[message_id].append(entry)
    return {message_id: in_order(entries) for message_id, entries in found.items()}


def record_hash_of(message: MessageRecord, *, chained_parts: int, files: Sequence[FileEntry]) -> bytes:
    """Recompute a message's record_hash from its record, parts and files."""
    given = [(part.tool_input, part.metadata) for part in message.parts if part.ordinal < chained_parts]
    return hashing.record_hash(
        idempotency_key=message.idempotency_key,
        token_count=message.token_count,
        token_counter=message.token_counter,
        keys=hashing.key_order(message.metadata, given),
        files=files,
    )


def _unusual(more: str) -> dict[str, Any]:
    """Parse the JSON array of the columns that most parts lack."""
    values = dict(zip(_UNUSUAL, _decode(more)[0], strict=True))
    if values["patch_files"] is not None:
        values["patch_files"] = tuple(values["patch_files"])
    if values["step_cost"] is not None:
        values["step_cost"] = Decimal(values["step_cost"])
    return values
