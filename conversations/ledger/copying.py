"""One conversation on its way from a ledger into the database."""

from __future__ import annotations

import base64
import hashlib
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import IO, Any

from conversations.audit import Act, AuditLog
from conversations.errors import Invalid
from conversations.ledger.ledger_export import LedgerExporter, first_line, last_line
from conversations.ledger.lines import body_of
from conversations.ledger.progress import COUNTED
from conversations.ledger.restoring import Restored
from conversations.ledger.types import ImportedLedger, Line, Tally
from conversations.models import Conversation
from conversations.policy import typed_overrides
from conversations.scope import Scope
from conversations.store.context import CostOf, fill_context, recount

# Puts the bytes with this hash, if there are any, where files are kept, and says where that is.
KeepFile = Callable[[str | None, IO[bytes] | None], str]

BATCH_LINES = 500
BATCH_BYTES = 4 * 1024**2
# What is larger than this waits on the disk, not in memory, until its last bytes have come.
SPOOL_BYTES = 8 * 1024**2


@dataclass
class Copy:
    """Takes the lines of one conversation, inside a transaction that is the caller's."""

    scope: Scope
    workspace_id: int
    exporter: LedgerExporter
    cost_of: CostOf
    keep_file: KeepFile
    session_id: str
    # That of the ledger's last line, for the audit log.
    line_hash: str
    _said: dict[str, Any] = field(default_factory=lambda: defaultdict(hashlib.sha256))
    _waiting: list[Line] = field(default_factory=list)
    _waiting_bytes: int = 0
    _file: Line | None = None
    _bytes: IO[bytes] | None = None

    def write(self, first: Line, body: bytes, lines: Iterator[tuple[Line, bytes]]) -> ImportedLedger:
        """Write all lines up to the conversation's last, derive what follows from them, and read everything back.

        Raises Invalid, to be rolled back, if the copy would not be exported as these very lines.
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
        """Write the act down; texts that were erased before are erased by it here."""
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
        """Write the lines that wait: all of one type."""
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
        """The last file is complete: its bytes first, then its row."""
        line, content, self._file, self._bytes = self._file, self._bytes, None, None
        if line is None:
            return
        if content is not None:
            content.seek(0)
        self._rows.file(line, storage_uri=self.keep_file(line["content_hash"], content))
        if content is not None:
            content.close()

    def _end(self, conversation: Conversation, last: Line) -> None:
        conversation.title = last["title"]
        conversation.metadata = last["metadata"]
        conversation.overrides = typed_overrides(last["overrides"])
        conversation.updated_at = datetime.fromisoformat(last["updated_at"])
        conversation.save(update_fields=["title", "metadata", "overrides", "updated_at"])

    def _note(self, kind: str, body: bytes) -> None:
        self._said[kind].update(body + b"\n")

    def _require_same(self, conversation: Conversation, original: str) -> None:
        said = {kind: digest.hexdigest() for kind, digest in self._said.items()}
        self._said.clear()
        conversation.refresh_from_db()
        counts: Counter[str] = Counter()
        self._note("conversation", body_of({**first_line(conversation), "session_id": original}))
        for line in self.exporter.lines_of(conversation.pk):
            self._note(line["type"], body_of(line))
            if line["type"] in COUNTED:
                counts[COUNTED[line["type"]]] += 1
        tally = vars(Tally(**counts))
        self._note("end", body_of({**last_line(conversation), "session_id": original, "counts": tally}))
        again = {kind: digest.hexdigest() for kind, digest in self._said.items()}
        wrong = sorted(kind for kind in said.keys() | again.keys() if said.get(kind) != again.get(kind))
        if wrong:
            raise Invalid(
                f"The {wrong[0]} lines of {original[:80]!r} would not be exported again as they are, so it was not "
                "imported. Was the ledger written by another version?",
                code="ledger_not_reproducible",
            )


def _spool() -> IO[bytes]:
    return tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES)
