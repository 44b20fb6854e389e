"""Move texts that are too long for a message into files.

That text is the content: it is hashed, searched, counted and shown. It names the file and the SHA-256 of its bytes; the
places where it stands are kept beside it (`file_references`), so that the message as it was sent can be put together
again, byte for byte (`whole.py`). The message's record_hash, and with it the chain, seals files and places.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from conversations.content.large_texts.cutting import Marked, Scissors, Span, settle
from conversations.content.large_texts.file_references import NAMING, FileEntry, element, in_order
from conversations.content.tokens import TokenEstimator
from conversations.files.large_files import LargeFileService
from conversations.models import Conversation, FileReference, LargeFile
from conversations.policy import LEAST_LARGE_TOKENS
from conversations.types import MovedText, NewMessage, PartType

# What stands for a file is always shorter than what may become one.
MOST_SUMMARY_TOKENS = LEAST_LARGE_TOKENS // 2
_FILE_ID = re.compile(r"file_[0-9a-f]{16}")


@dataclass(frozen=True)
class Settled:
    """A message as it is stored, and where in it files stand."""

    message: NewMessage
    spans: tuple[tuple[Span, LargeFile], ...] = ()
    named: tuple[tuple[int, LargeFile], ...] = ()


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
        return Settled(message, tuple((span, files[span.mark]) for span in spans), tuple(self._named(message)))

    def _named(self, message: NewMessage) -> list[tuple[int, LargeFile]]:
        """Files of this workspace that parts of the message point at, by their ids."""
        ids = {
            ordinal: part.file_url
            for ordinal, part in enumerate(message.parts)
            if part.part_type is PartType.FILE and part.file_url and _FILE_ID.fullmatch(part.file_url)
        }
        if not ids:
            return []
        found = LargeFile.objects.filter(conversation__workspace_id=self.conversation.workspace_id).in_bulk(
            list(ids.values())
        )
        return [(ordinal, found[file_id]) for ordinal, file_id in ids.items() if file_id in found]

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


def entries_of(settled: Settled) -> list[FileEntry]:
    """The files that the message needs, as its record seals them."""
    held = [
        [file.file_id, _sha256(file), span.part_ordinal, span.field, span.start_at, span.length]
        for span, file in settled.spans
    ]
    return in_order(
        held + [[file.file_id, _sha256(file), ordinal, NAMING, None, None] for ordinal, file in settled.named]
    )


def _sha256(file: LargeFile) -> str | None:
    return None if file.content_hash is None else bytes(file.content_hash).hex()


def write_references(settled: Sequence[Settled], message_ids: Sequence[int], *, created: Sequence[bool]) -> None:
    """Write which files the new messages need."""
    FileReference.objects.bulk_create(
        reference
        for each, message_id, is_new in zip(settled, message_ids, created, strict=True)
        if is_new
        for reference in _references(each, message_id)
    )


def _references(settled: Settled, message_id: int) -> list[FileReference]:
    return [
        FileReference(
            message_id=message_id, file_id=file_id, part_ordinal=ordinal, field=field, start_at=start_at, length=length
        )
        for file_id, _, ordinal, field, start_at, length in entries_of(settled)
    ]


def moved_texts(settled: Settled, message_id: int) -> list[MovedText]:
    """The texts that became files, for the caller."""
    return [
        MovedText(
            message_id=message_id,
            part_ordinal=span.part_ordinal,
            field=span.field,
            file_id=file.file_id,
            byte_size=file.byte_size or 0,
        )
        for span, file in settled.spans
    ]
