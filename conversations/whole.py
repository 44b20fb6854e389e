"""A message as it was sent: what stands for files gives way to what they hold, byte for byte."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import replace
from typing import Any

from conversations.cutting import CONTENT
from conversations.errors import Conflict, Unavailable
from conversations.large_files import LargeFileService
from conversations.models import FileReference, LargeFile
from conversations.types import MessageRecord


def whole(message: MessageRecord, *, files: LargeFileService) -> MessageRecord:
    """The message with all its texts in full; its hash stays that of what is stored, with what stands for them.

    Raises Unavailable where the storage cannot give the bytes, NotFound where they were erased for good, and Conflict
    where they are not those that the message names.
    """
    by_field: dict[tuple[int | None, str], list[FileReference]] = defaultdict(list)
    held = FileReference.objects.filter(message_id=message.message_id, start_at__isnull=False)
    for reference in held.select_related("file").order_by("-start_at"):
        by_field[reference.part_ordinal, reference.field].append(reference)
    if not by_field:
        return message
    texts: dict[str, str] = {}
    changes: dict[int | None, dict[str, Any]] = defaultdict(dict)
    for (ordinal, name), references in by_field.items():
        holder = message if ordinal is None else next(part for part in message.parts if part.ordinal == ordinal)
        text = str(getattr(holder, name))
        # From the end on, so that the places before stay where they are.
        for each in references:
            start, end = each.start_at or 0, (each.start_at or 0) + (each.length or 0)
            _check(each.file, text[start:end])
            if each.file_id not in texts:
                texts[each.file_id] = _text_of(each.file, files)
            text = f"{text[:start]}{texts[each.file_id]}{text[end:]}"
        changes[ordinal][name] = text
    parts = tuple(replace(part, **changes[part.ordinal]) for part in message.parts)
    return replace(message, content=changes[None].get(CONTENT, message.content), parts=parts)


def _check(file: LargeFile, shown: str) -> None:
    if f'"{file.file_id}"' not in shown or bytes(file.content_hash or b"").hex() not in shown:
        raise Conflict(f"What stands for {file.file_id} is not where it should be.", code="damaged")


def _text_of(file: LargeFile, files: LargeFileService) -> str:
    content = files.read(file_id=file.file_id)
    if hashlib.sha256(content).digest() != bytes(file.content_hash or b""):
        raise Unavailable(f"The bytes of {file.file_id} are not those that were stored.", code="damaged")
    return content.decode("utf-8", "surrogatepass")
