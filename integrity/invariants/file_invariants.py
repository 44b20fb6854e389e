"""What was too large for a context lies in storage as it came."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from django.core.exceptions import SuspiciousOperation
from django.core.files.storage import default_storage

from integrity.invariants.invariant import Found, counted, invariant, streamed
from integrity.types import Finding, Severity

CHUNK_BYTES = 1024 * 1024
# What one look reads at most; of the files behind that, existence and size are checked.
MOST_BYTES = 4 * 1024**3

# Equal bytes lie in one place for a whole workspace: side by side, they are read once.
_FILES = """
    SELECT conversation_id, file_id, storage_uri, byte_size, content_hash, abs(hashtext(file_id)) %% %(every)s = 0
    FROM large_files
    WHERE conversation_id = ANY(%(ids)s) AND erased_by_id IS NULL
    ORDER BY storage_uri, file_id
"""


@invariant(Severity.CRITICAL, is_sampled=True)
def files_are_stored_whole(conversation_ids: Sequence[int], *, every: int = 1) -> Found:
    """The bytes of every large file are there, as many as were stored, with the hash that was noted."""
    return counted(_damaged(conversation_ids, every))


def _damaged(conversation_ids: Sequence[int], every: int) -> Iterator[Finding]:
    left = MOST_BYTES
    read_last: tuple[str, bytes] = ("", b"")
    for conversation_id, file_id, path, size, sealed, is_in_sample in streamed(_FILES, conversation_ids, every=every):
        try:
            found = default_storage.size(path)
            if size is not None and found != size:
                yield Finding(conversation_id, file_id, f"has {found} bytes in storage, not {size}")
                continue
            if sealed is None or not is_in_sample:
                continue
            if read_last[0] != path:
                if found > left:
                    continue
                left -= found
                read_last = (path, _hash_of(path))
            if read_last[1] != bytes(sealed):
                yield Finding(conversation_id, file_id, "its bytes in storage are not what was hashed")
        except FileNotFoundError:
            yield Finding(conversation_id, file_id, "its bytes are not in storage")
        except (OSError, SuspiciousOperation) as refusal:
            # The kind and not the words, which name a path of the machine's.
            yield Finding(conversation_id, file_id, f"its bytes cannot be read: {type(refusal).__name__}")


def _hash_of(path: str) -> bytes:
    digest = hashlib.sha256()
    with default_storage.open(path) as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.digest()
