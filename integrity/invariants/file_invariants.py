"""Invariants of large files, and of messages' references to them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from django.core.exceptions import SuspiciousOperation
from django.core.files.storage import default_storage

from conversations.cold_storage.cold_texts import readable_texts
from conversations.content import hashing
from conversations.content.large_texts.file_references import misplaced
from conversations.sql import load, rows
from conversations.store.read import files_of, messages_of
from integrity.invariants.invariant import Found, count_findings, invariant, stream_portions, stream_rows, violations
from integrity.types import Finding, Severity

SQL = load("integrity/file_invariants.sql")
_SIZES = "SELECT file_id, byte_size FROM large_files WHERE file_id = ANY(%s)"

# The maximum number of bytes that one batch reads. For further files, only existence and size are checked.
MOST_BYTES = 4 * 1024**3


@invariant(Severity.CRITICAL)
def references_lead_to_their_files(conversation_ids: Sequence[int]) -> Found:
    """Each file that a message needs exists; its element is at its recorded position.

    Only the recorded positions are checked, because any text may contain such an element as a quotation.
    """
    return violations(SQL["lost_files"], conversation_ids) + count_findings(_misplaced(conversation_ids))


def _misplaced(conversation_ids: Sequence[int]) -> Iterator[Finding]:
    for portion in stream_portions(SQL["messages_with_files"], conversation_ids):
        chained = dict(portion)
        ids = list(chained)
        files = files_of(ids)
        named = {entry[0] for entries in files.values() for entry in entries}
        sizes = dict(rows(_SIZES, [list(named)]))
        # Other invariants report texts that do not match their hash or cannot be read.
        for message in messages_of(ids, cold=readable_texts()):
            if hashing.content_hash(message.content).hex() != message.content_hash:
                continue
            parts = {p.ordinal: vars(p) for p in message.parts if p.ordinal < chained[message.message_id]}
            for entry in files.get(message.message_id, []):
                wrong = entry[0] in sizes and misplaced(entry, message.content, parts, byte_size=sizes[entry[0]])
                if wrong:
                    yield Finding(message.conversation_id, message.id, wrong)


@invariant(Severity.CRITICAL, is_sampled=True)
def files_are_stored_whole(conversation_ids: Sequence[int], *, every: int = 1) -> Iterator[Finding]:
    """The bytes of every large file are in storage, with the recorded size and hash."""
    left = MOST_BYTES
    read_last: tuple[str, bytes] = ("", b"")
    for conversation_id, file_id, path, size, stored_hash, is_in_sample in stream_rows(
        SQL["stored_files"], conversation_ids, every=every
    ):
        try:
            found = default_storage.size(path)
            if size is not None and found != size:
                yield Finding(conversation_id, file_id, f"has {found} bytes in storage, not {size}")
                continue
            if stored_hash is None or not is_in_sample:
                continue
            if read_last[0] != path:
                if found > left:
                    continue
                left -= found
                read_last = (path, _hash_of(path))
            if read_last[1] != bytes(stored_hash):
                yield Finding(conversation_id, file_id, "its bytes in storage do not match its hash")
        except FileNotFoundError:
            yield Finding(conversation_id, file_id, "its bytes are missing from storage")
        except (OSError, SuspiciousOperation) as error:
            # Only the type of the error, because its message contains a path on this machine.
            yield Finding(conversation_id, file_id, f"its bytes cannot be read: {type(error).__name__}")


def _hash_of(path: str) -> bytes:
    digest = hashlib.sha256()
    with default_storage.open(path) as file:
        for chunk in file.chunks():
            digest.update(chunk)
    return digest.digest()
