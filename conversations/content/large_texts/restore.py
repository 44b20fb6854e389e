"""Restore a message as it was sent, with the texts that became files."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import replace
from typing import Any

from conversations.content.large_texts.cutting import CONTENT
from conversations.content.large_texts.file_references import FileEntry, misplaced
from conversations.errors import Conflict, Unavailable
from conversations.files.large_files import LargeFileService
from conversations.sql import rows
from conversations.store.read import files_of, record_hash_of
from conversations.types import MessageRecord

_SEAL = "SELECT record_hash, chained_parts FROM messages WHERE message_id = %s"


def whole(message: MessageRecord, *, files: LargeFileService) -> MessageRecord:
    """The message with all its texts in full; its hash stays the stored one.

    Everything is compared before it answers. Raises Unavailable where the storage cannot give the bytes or gives
    others, NotFound where they were erased for good, and Conflict where the files are not those that were sealed with
    the message, or not in their places. An erased message has no texts.
    """
    if message.erased_by_id is not None:
        return message
    entries = files_of([message.message_id]).get(message.message_id, [])
    _require_as_sealed(message, entries)
    by_field: dict[tuple[int | None, str], list[FileEntry]] = defaultdict(list)
    for entry in entries:
        _, _, ordinal, field, start_at, _ = entry
        if start_at is not None:
            by_field[ordinal, field].append(entry)
    if not by_field:
        return message
    texts: dict[str, str] = {}
    changes: dict[int | None, dict[str, Any]] = defaultdict(dict)
    for (ordinal, name), held in by_field.items():
        holder = message if ordinal is None else next(part for part in message.parts if part.ordinal == ordinal)
        text = str(getattr(holder, name))
        # From the end on, so that the places before stay where they are.
        for file_id, sha256, _, _, start_at, length in reversed(held):
            if file_id not in texts:
                texts[file_id] = _text_of(file_id, sha256, files)
            text = f"{text[:start_at]}{texts[file_id]}{text[start_at + length :]}"
        changes[ordinal][name] = text
    parts = tuple(replace(part, **changes[part.ordinal]) for part in message.parts)
    return replace(message, content=changes[None].get(CONTENT, message.content), parts=parts)


def _require_as_sealed(message: MessageRecord, entries: list[FileEntry]) -> None:
    """Raise Conflict unless the message sealed these files, each in its place."""
    [(seal, chained_parts)] = rows(_SEAL, [message.message_id])
    # A message from before records were sealed has no seal; then only what is there can be compared.
    if seal is not None and record_hash_of(message, chained_parts=chained_parts, files=entries) != bytes(seal):
        raise _damaged(message, "its files, or what else its record says, are not what was sealed")
    parts = {part.ordinal: vars(part) for part in message.parts if part.ordinal < chained_parts}
    for entry in entries:
        if wrong := misplaced(entry, message.content, parts):
            raise _damaged(message, wrong)


def _damaged(message: MessageRecord, why: str) -> Conflict:
    return Conflict(f"{message.id} cannot be put together: {why}. `lcm check` lists what is wrong.", code="damaged")


def _text_of(file_id: str, sha256: str, files: LargeFileService) -> str:
    content = files.read(file_id=file_id)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise Unavailable(
            f"The bytes of {file_id} are not those that were stored. `lcm check` lists what is wrong.", code="damaged"
        )
    return content.decode("utf-8", "surrogatepass")
