"""Check the files of a ledger: present, complete, and with the right hash. Pure."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from typing import Any

from conversations.content.large_texts.file_references import NAMING
from conversations.ledger.types import Findings, Line
from conversations.ledger.verification_memory import SealedReference, VerificationMemory, sealed_reference


@dataclass
class FileCheck:
    """Checks the files of one conversation; only the hash of their bytes is kept."""

    findings: Findings
    memory: VerificationMemory
    # The files of this conversation with their hashes, and the files of other conversations that messages name.
    files: dict[str, str | None] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)
    _file: Line | None = None
    _digest: Any = None
    _size: int = 0
    # The number of references that were compared.
    _compared: int = 0

    def file(self, line: Line) -> None:
        """Check a file line; the bytes, if any, follow."""
        self.close()
        file_id, require = line["file_id"], self.findings.require
        require(file_id not in self.files, "duplicate_file_id", f"{file_id} occurs twice")
        require(line["bytes"] != "missing", "file_missing", f"the bytes of {file_id} were missing from storage")
        self.files[file_id] = line["content_hash"]
        self._file, self._digest, self._size = line, hashlib.sha256(), 0

    def bytes(self, line: Line) -> None:
        """Check bytes of the last file."""
        file, file_id = self._file, line["file_id"]
        if file is None or file["file_id"] != file_id or file["bytes"] != "inline":
            sentence = f"these bytes do not belong to the file before them: {file_id}"
            self.findings.add("bytes_out_of_place", sentence)
            return
        self.findings.require(line["offset"] == self._size, "bytes_out_of_place", f"{file_id}: bytes are missing")
        try:
            chunk = base64.b64decode(line["base64"], validate=True)
        except ValueError:
            self.findings.add("file_hash_mismatch", f"{file_id}: this is not valid base64")
            return
        self._digest.update(chunk)
        self._size += len(chunk)

    def reference(self, line: Line) -> None:
        """Check a reference line against the next entry in the messages' `files`."""
        self.close()
        seq, file_id = line["seq"], line["file_id"]
        if file_id not in self.files:
            # A file that is only named may belong to another conversation. The record_hash covers its hash.
            is_named = line["field"] == NAMING
            self.findings.require(is_named, "unknown_file", f"message {seq} needs {file_id}, which is missing")
            self.others.add(file_id)
        known = self.memory.get(seq) is not None
        self.findings.require(known, "unknown_message", f"message {seq}, which needs a file, is missing")
        expected = self._next_sealed()
        place = [line[name] for name in ("part_ordinal", "field", "start_at", "length")]
        found = sealed_reference(seq, [file_id, self.files.get(file_id), *place])
        compared = 3 if file_id in self.files else 2
        is_same = expected is not None and expected[:compared] == found[:compared]
        self.findings.require(is_same, "reference_mismatch", f"message {seq} does not seal this reference")

    def finish(self) -> None:
        """At the end line, check that each entry in `files` had a reference line."""
        self.close()
        self.findings.require(self._next_sealed() is None, "reference_mismatch", "a reference of a message is missing")

    def close(self) -> None:
        """Check size and hash of the last file, once its bytes have ended."""
        file, self._file = self._file, None
        if file is None or file["bytes"] != "inline":
            return
        is_same = file["content_hash"] in (None, self._digest.hexdigest())
        self.findings.require(
            is_same and file["byte_size"] in (None, self._size),
            "file_hash_mismatch",
            f"the bytes of {file['file_id']} do not match its hash",
        )

    def _next_sealed(self) -> SealedReference | None:
        self._compared += 1
        return self.memory.reference(self._compared)
