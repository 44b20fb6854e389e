"""Move texts that are too long for a message into files, and restore them.

An element in place of the text names the file and the SHA-256 of its bytes; it is the content that is hashed, searched,
counted and shown. Its place is kept in `file_references`, for `whole`, and sealed by the message's record_hash.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from conversations.content.large_texts.cutting import Marked, Scissors, Span, settle
from conversations.content.large_texts.file_references import NAMING, FileEntry, element, in_order, misplaced
from conversations.content.tokens import TokenEstimator
from conversations.errors import Conflict, Unavailable
from conversations.files.large_files import LargeFileService
from conversations.models import Conversation, FileReference, LargeFile
from conversations.policy import LEAST_LARGE_TOKENS
from conversations.sql import rows
from conversations.store.read import files_of, record_hash_of
from conversations.types import MessageRecord, NewMessage, PartType

# What stands for a file is always shorter than what may become one.
MOST_SUMMARY_TOKENS = LEAST_LARGE_TOKENS // 2
_SEAL = "SELECT record_hash, chained_parts FROM messages WHERE message_id = %s"
_FILE_ID = re.compile(r"file_[0-9a-f]{16}")


@dataclass(frozen=True)
class Settled:
    """A message as it is stored, its files, and the texts that became files."""

    message: NewMessage
    # As its record seals them.
    entries: list[FileEntry]
    moved: tuple[tuple[Span, LargeFile], ...]


@dataclass(frozen=True)
class Interception:
    """The files of one append: bytes first, rows with the messages."""

    conversation: Conversation
    files: LargeFileService
    tokens: TokenEstimator
    limit: int
    _kept: dict[str, LargeFile] = field(default_factory=dict)

    def marked(self, message: NewMessage, *, token_count: int) -> Marked:
        """The message without what is too long for it, whose bytes are in storage now."""
        if not self.limit or token_count <= self.limit:
            return Marked(message)
        marked = Scissors(limit=self.limit, count=self.tokens.count).cut(message)
        for mark, cut in marked.cuts.items():
            self._kept[mark] = self.files.keep(
                self.conversation,
                cut.text.encode("utf-8", "surrogatepass"),
                file_name=cut.file_name,
                mime_type=cut.mime_type,
            )
        return marked

    def settled(self, marked: Marked) -> Settled:
        """Write the rows of the files and put their elements into the message."""
        files = {mark: self.files.describe(self._kept[mark]) for mark in marked.cuts}
        message, spans = settle(marked, {mark: self._standing_for(file) for mark, file in files.items()})
        moved = tuple((span, files[span.mark]) for span in spans)
        entries: list[FileEntry] = [
            [file.file_id, _sha256(file), span.part_ordinal, span.field, span.start_at, span.length]
            for span, file in moved
        ]
        return Settled(message, in_order(entries + self._named(message)), moved)

    def _named(self, message: NewMessage) -> list[FileEntry]:
        """The files of this workspace that parts of the message name by their ids."""
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
            [file_id, _sha256(found[file_id]), ordinal, NAMING, None, None]
            for ordinal, file_id in ids.items()
            if file_id in found
        ]

    def _standing_for(self, file: LargeFile) -> str:
        """The element in place of the file, with as much summary as fits."""
        summary = file.exploration_summary or ""
        while self.tokens.count(summary) > MOST_SUMMARY_TOKENS:
            summary = f"{summary[: len(summary) * 3 // 4]} …"
        return element(
            file_id=file.file_id,
            file_name=file.file_name,
            byte_size=file.byte_size,
            sha256=_sha256(file) or "",
            summary=summary,
        )


def write_references(settled: Sequence[Settled], message_ids: Sequence[int], *, created: Sequence[bool]) -> None:
    """Write which files the new messages need."""
    FileReference.objects.bulk_create(
        FileReference(
            message_id=message_id, file_id=file_id, part_ordinal=ordinal, field=name, start_at=start_at, length=length
        )
        for each, message_id, is_new in zip(settled, message_ids, created, strict=True)
        if is_new
        for file_id, _, ordinal, name, start_at, length in each.entries
    )


def _sha256(file: LargeFile) -> str | None:
    return file.as_record().content_hash


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
    texts: dict[str, str] = {}
    parts = {part.ordinal: part for part in message.parts}
    # From the end on, so that the places before stay where they are.
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
