"""Import one conversation from a ledger into the database."""

from __future__ import annotations

import base64
import hashlib
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import IO, Any

from django.core.files.base import File

from conversations.audit import Act, AuditLog
from conversations.errors import Invalid
from conversations.files.large_files import LargeFileService
from conversations.files.shared_locks import SharedBytes
from conversations.files.storage import storing
from conversations.ledger.ledger_export import LedgerExporter, first_line, last_line
from conversations.ledger.lines import COUNTED, body_of
from conversations.ledger.restoring import Restored
from conversations.ledger.types import ImportedLedger, Line, Tally
from conversations.models import Conversation
from conversations.policy import typed_overrides
from conversations.scope import Scope
from conversations.store.context import CostOf, fill_context, recount

BATCH_LINES = 500
BATCH_BYTES = 4 * 1024**2
# Files larger than this are collected on disk, not in memory.
SPOOL_BYTES = 8 * 1024**2


@dataclass
class Copy:
    """Takes the lines of one conversation, inside the caller's transaction."""

    scope: Scope
    workspace_id: int
    exporter: LedgerExporter
    cost_of: CostOf
    files: LargeFileService
    session_id: str
    # The line_hash of the ledger's last line, for the audit log.
    line_hash: str
    _digests: dict[str, Any] = field(default_factory=lambda: defaultdict(hashlib.sha256))
    _waiting: list[Line] = field(default_factory=list)
    _waiting_bytes: int = 0
    _file: Line | None = None
    _bytes: IO[bytes] | None = None

    def write(self, first: Line, body: bytes, lines: Iterator[tuple[Line, bytes]]) -> ImportedLedger:
        """Write the conversation, and compare an export of it with the lines.

        Raises Invalid, for the caller to roll back, if an export would differ.
        """
        conversation = self._begin(first)
        self._rows = Restored(
            conversation_id=conversation.pk,
            workspace_id=conversation.workspace_id,
            session_id=self.session_id,
            audit_id=self._announce(conversation, first["session_id"]),
        )
        self._note("conversation", body)
        last: Line = {}
        for line, body in lines:
            self._note(line["type"], body)
            if line["type"] == "end":
                last = line
                break
            self._take(line, len(body))
        self._flush()
        self._keep_file()
        self._end(conversation, last)
        fill_context(conversation.pk, cost_of=self.cost_of)
        recount(conversation.pk)
        self._require_same(conversation, first["session_id"])
        return ImportedLedger(
            conversation_id=conversation.pk, session_id=self.session_id, counts=Tally(**last["counts"])
        )

    def _begin(self, first: Line) -> Conversation:
        return Conversation.objects.create(
            workspace_id=self.workspace_id,
            session_id=self.session_id,
            created_at=datetime.fromisoformat(first["created_at"]),
        )

    def _announce(self, conversation: Conversation, original: str) -> int:
        """Record the import; messages that the ledger marks as erased name this act."""
        renamed = {} if original == self.session_id else {"exported_as": original}
        return (
            AuditLog(self.scope)
            .record(
                Act.IMPORT_LEDGER,
                workspace_id=conversation.workspace_id,
                conversation_id=conversation.pk,
                target=self.session_id,
                detail={"line_hash": self.line_hash, **renamed},
            )
            .pk
        )

    def _take(self, line: Line, size: int) -> None:
        kind = line["type"]
        is_other = bool(self._waiting) and self._waiting[0]["type"] != kind
        if is_other or len(self._waiting) == BATCH_LINES or self._waiting_bytes + size > BATCH_BYTES:
            self._flush()
        if kind == "bytes":
            assert self._bytes is not None
            self._bytes.write(base64.b64decode(line["base64"]))
            return
        self._keep_file()
        if kind == "file":
            self._file = line
            inline = line["bytes"] == "inline"
            self._bytes = _spool() if inline else None
            return
        self._waiting.append(line)
        self._waiting_bytes += size

    def _flush(self) -> None:
        """Write the collected lines, which are all of one type."""
        lines, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if not lines:
            return
        kind = lines[0]["type"]
        match kind:
            case "message":
                self._rows.messages(lines)
            case "part":
                self._rows.parts(lines)
            case "summary":
                self._rows.summaries(lines)
            case "reference":
                self._rows.references(lines)
            case _:
                section = next(section for section in self.exporter.sections if section.kind == kind)
                section.restore(self._rows.conversation_id, lines)

    def _keep_file(self) -> None:
        """Store the last file, which is complete: its bytes first, then its row."""
        line, content, self._file, self._bytes = self._file, self._bytes, None, None
        if line is None:
            return
        if content is not None:
            content.seek(0)
        self._rows.file(line, storage_uri=self._store(line["content_hash"], content))
        if content is not None:
            content.close()

    def _store(self, content_hash: str | None, content: IO[bytes] | None) -> str:
        """Return the path of the bytes with this hash, and store them if missing.

        A file without bytes gets the same path: another conversation of the workspace may have stored them.
        """
        if content_hash is None:
            return ""
        path = f"{self.workspace_id}/{content_hash[:2]}/{content_hash}"
        if content is not None:
            with storing("A file cannot be stored"):
                if not self.files.storage.exists(path):
                    self.files.storage.save(path, File(content))
            SharedBytes(self.files.storage, path).hold()
        return path

    def _end(self, conversation: Conversation, last: Line) -> None:
        conversation.title = last["title"]
        conversation.metadata = last["metadata"]
        conversation.overrides = typed_overrides(last["overrides"])
        conversation.updated_at = datetime.fromisoformat(last["updated_at"])
        conversation.save(update_fields=["title", "metadata", "overrides", "updated_at"])

    def _note(self, kind: str, body: bytes) -> None:
        self._digests[kind].update(body + b"\n")

    def _require_same(self, conversation: Conversation, original: str) -> None:
        imported = {kind: digest.hexdigest() for kind, digest in self._digests.items()}
        self._digests.clear()
        conversation.refresh_from_db()
        counts: Counter[str] = Counter()
        self._note("conversation", body_of({**first_line(conversation), "session_id": original}))
        for line in self.exporter.lines_of(conversation.pk):
            self._note(line["type"], body_of(line))
            if line["type"] in COUNTED:
                counts[COUNTED[line["type"]]] += 1
        tally = vars(Tally(**counts))
        self._note("end", body_of({**last_line(conversation), "session_id": original, "counts": tally}))
        exported = {kind: digest.hexdigest() for kind, digest in self._digests.items()}
        kinds = imported.keys() | exported.keys()
        wrong = sorted(kind for kind in kinds if imported.get(kind) != exported.get(kind))
        if wrong:
            raise Invalid(
                f"An export of {original[:80]!r} would have other {wrong[0]} lines, so it was not imported. Was it "
                "written by another version?",
                code="ledger_not_reproducible",
            )


def _spool() -> IO[bytes]:
    return tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES)
