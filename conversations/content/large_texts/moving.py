"""Move texts that are too long for a message into files, and restore them.

The text is replaced by an element with the file's id and SHA-256. This element is then hashed, searched, counted and
shown as content. A row of `file_references`, covered by record_hash, has its position: `restore_texts` needs it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from conversations.content.large_texts.cutting import MarkedMessage, Span, TextCutter, fill_marks
from conversations.content.large_texts.file_references import NAMING, FileEntry, element, in_order, misplaced
from conversations.content.tokens import TokenEstimator
from conversations.errors import Conflict, Unavailable
from conversations.files.large_files import LargeFileService
from conversations.models import Conversation, FileReference, LargeFile
from conversations.policy import LEAST_LARGE_TOKENS
from conversations.sql import rows
from conversations.store.read import files_of, record_hash_of
from conversations.types import LargeFileRecord, MessageRecord, NewMessage, PartType

# Keeps the element of a file shorter than any text that becomes a file.
MOST_SUMMARY_TOKENS = LEAST_LARGE_TOKENS // 2
_SEAL = "SELECT record_hash, chained_parts FROM messages WHERE message_id = %s"
_FILE_ID = re.compile(r"file_[0-9a-f]{16}")


@dataclass(frozen=True)
class Settled:
    """A message as it is stored, its files, and the texts that became files."""

    message: NewMessage
    # Sorted by `in_order`, as record_hash covers them.
    entries: list[FileEntry]
    moved: tuple[tuple[Span, LargeFileRecord], ...]


@dataclass(frozen=True)
class LongTextMover:
    """Moves long texts of one append to files: bytes first, then rows with messages."""

    conversation: Conversation
    files: LargeFileService
    tokens: TokenEstimator
    limit: int
    _kept: dict[str, LargeFile] = field(default_factory=dict)

    def marked(self, message: NewMessage, *, token_count: int) -> MarkedMessage:
        """Cut long texts out of a message, and write their bytes to storage."""
        if not self.limit or token_count <= self.limit:
            return MarkedMessage(message)
        marked = TextCutter(limit=self.limit, count=self.tokens.count).cut(message)
        for mark, cut in marked.cuts.items():
            self._kept[mark] = self.files.keep(
                self.conversation,
                cut.text.encode("utf-8", "surrogatepass"),
                file_name=cut.file_name,
                mime_type=cut.mime_type,
            )
        return marked

    def discard(self) -> None:
        """Remove the bytes of a refused append, unless another file needs them."""
        self.files.discard(file.storage_uri for file in self._kept.values())

    def settled(self, marked: MarkedMessage) -> Settled:
        """Write the rows of the files and put their elements into the message."""
        files = {mark: self.files.describe(self._kept[mark]).as_record() for mark in marked.cuts}
        message, spans = fill_marks(marked, {mark: self._standing_for(file) for mark, file in files.items()})
        moved = tuple((span, files[span.mark]) for span in spans)
        entries: list[FileEntry] = [
            [file.file_id, file.content_hash, span.part_ordinal, span.field, span.start_at, span.length]
            for span, file in moved
        ]
        return Settled(message, in_order(entries + self._named(message)), moved)

    def _named(self, message: NewMessage) -> list[FileEntry]:
        """Return entries for files of this workspace that FILE parts name by id."""
        ids = {
            ordinal: part.file_url
            for ordinal, part in enumerate(message.parts)
            if part.part_type is PartType.FILE and part.file_url and _FILE_ID.fullmatch(part.file_url)
        }
        if not ids:
            return []
        ours = LargeFile.objects.filter(conversation__workspace_id=self.conversation.workspace_id)
        found = ours.in_bulk(list(ids.values()))
        return [
            [file_id, found[file_id].as_record().content_hash, ordinal, NAMING, None, None]
            for ordinal, file_id in ids.items()
            if file_id in found
        ]

    def _standing_for(self, file: LargeFileRecord) -> str:
        """Build the file's element, with as much of its summary as fits."""
        summary = file.exploration_summary or ""
        while self.tokens.count(summary) > MOST_SUMMARY_TOKENS:
            summary = f"{summary[: len(summary) * 3 // 4]} …"
        return element(
            file_id=file.file_id,
            file_name=file.file_name,
            byte_size=file.byte_size,
            sha256=file.content_hash or "",
            summary=summary,
        )


def write_references(settled: Sequence[Settled], message_ids: Sequence[int], *, created: Sequence[bool]) -> None:
    """Insert the file references of messages that were created, not repeated."""
    FileReference.objects.bulk_create(
        FileReference(
            message_id=message_id, file_id=file_id, part_ordinal=ordinal, field=name, start_at=start_at, length=length
        )
        for each, message_id, is_new in zip(settled, message_ids, created, strict=True)
        if is_new
        for file_id, _, ordinal, name, start_at, length in each.entries
    )


def restore_texts(message: MessageRecord, *, files: LargeFileService) -> MessageRecord:
    """Restore the texts that were moved to files; the hashes stay the stored ones.

    Raises Conflict if the files or their positions are not those that record_hash covers; Unavailable if the storage
    fails or returns other bytes; NotFound if a file was erased. An erased message is returned unchanged.
    """
    if message.erased_by_id is not None:
        return message
    entries = files_of([message.message_id]).get(message.message_id, [])
    _require_as_sealed(message, entries)
    texts: dict[str, str] = {}
    parts = {part.ordinal: part for part in message.parts}
    # From the last position to the first, so that the offsets of the other elements stay valid.
    for file_id, sha256, ordinal, name, start_at, length in reversed(entries):
        if start_at is None:
            continue
        if file_id not in texts:
            texts[file_id] = _text_of(file_id, sha256, files)
        around = str(getattr(message if ordinal is None else parts[ordinal], name))
        change: dict[str, Any] = {name: f"{around[:start_at]}{texts[file_id]}{around[start_at + length :]}"}
        if ordinal is None:
            message = replace(message, **change)
        else:
            parts[ordinal] = replace(parts[ordinal], **change)
    return replace(message, parts=tuple(parts.values()))


def _require_as_sealed(message: MessageRecord, entries: list[FileEntry]) -> None:
    """Raise Conflict unless record_hash covers these files, at these positions."""
    [(seal, chained_parts)] = rows(_SEAL, [message.message_id])
    # For a message without a record_hash, only the elements in its texts can be checked.
    if seal is not None and record_hash_of(message, chained_parts=chained_parts, files=entries) != bytes(seal):
        raise _damaged(message, "its files, or what else its record says, are not what was sealed")
    parts = {part.ordinal: vars(part) for part in message.parts if part.ordinal < chained_parts}
    for entry in entries:
        if wrong := misplaced(entry, message.content, parts):
            raise _damaged(message, wrong)


def _damaged(message: MessageRecord, why: str) -> Conflict:
    return Conflict(f"{message.id} cannot be restored: {why}. `lcm check` lists what is wrong.", code="damaged")


def _text_of(file_id: str, sha256: str, files: LargeFileService) -> str:
    content = files.read(file_id=file_id)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise Unavailable(
            f"The bytes of {file_id} are not those that were stored. `lcm check` lists what is wrong.", code="damaged"
        )
    return content.decode("utf-8", "surrogatepass")
