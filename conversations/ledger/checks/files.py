"""Whether the files of a ledger are there, whole, and what their hashes say."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conversations.ledger.checks.findings import Findings
from conversations.ledger.checks.memory import MessageMemory


@dataclass
class FileCheck:
    """The files of one conversation; of their bytes only the hash is kept."""

    findings: Findings
    memory: MessageMemory
    file_ids: set[str] = field(default_factory=set)
    _file: Mapping[str, Any] | None = None
    _digest: Any = None
    _size: int = 0

    def file(self, line: Mapping[str, Any]) -> None:
        """One more file; its bytes, if it has any, come next."""
        self.close()
        file_id = line["file_id"]
        self._require(file_id not in self.file_ids, "duplicate_file_id", f"{file_id} was there already")
        self._require(line["bytes"] != "missing", "file_missing", f"the bytes of {file_id} were not in the storage")
        self.file_ids.add(file_id)
        self._file, self._digest, self._size = line, hashlib.sha256(), 0

    def bytes(self, line: Mapping[str, Any]) -> None:
        """More bytes of the file that came last."""
        file = self._file
        if file is None or file["file_id"] != line["file_id"] or file["bytes"] != "inline":
            self.findings.add("bytes_out_of_place", f"these are no bytes of the file before them: {line['file_id']}")
            return
        self._require(line["offset"] == self._size, "bytes_out_of_place", f"{line['file_id']}: bytes are missing")
        try:
            chunk = base64.b64decode(line["base64"], validate=True)
        except (binascii.Error, ValueError):
            self.findings.add("file_hash_mismatch", f"{line['file_id']}: this is not base64")
            return
        self._digest.update(chunk)
        self._size += len(chunk)

    def reference(self, line: Mapping[str, Any]) -> None:
        """A message that needs a file."""
        known = line["file_id"] in self.file_ids
        self._require(known, "unknown_file", f"message {line['seq']} needs {line['file_id']}, which is not there")
        known = self.memory.get(line["seq"]) is not None
        self._require(known, "unknown_message", f"message {line['seq']}, which needs a file, is not there")

    def close(self) -> None:
        """No more bytes come of the last file."""
        file, self._file = self._file, None
        if file is None or file["bytes"] != "inline":
            return
        is_same = file["content_hash"] in (None, self._digest.hexdigest())
        self._require(
            is_same and file["byte_size"] in (None, self._size),
            "file_hash_mismatch",
            f"the bytes of {file['file_id']} are not what was hashed",
        )

    def _require(self, holds: bool, code: str, detail: str) -> None:
        self.findings.require(holds, code, detail)
