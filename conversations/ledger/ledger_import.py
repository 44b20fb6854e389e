"""Import conversations whose export gives the same lines as the ledger."""

from __future__ import annotations

import base64
import hashlib
import tempfile
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO, Any, BinaryIO

from django.core.files.base import File
from django.db import DataError, IntegrityError, transaction
from psycopg.errors import UniqueViolation

from conversations.audit import Act, AuditLog
from conversations.errors import Conflict, Invalid
from conversations.files.large_files import LargeFileService, hold_bytes
from conversations.files.storage import storing
from conversations.ledger.ledger_export import LedgerExporter, first_line, last_line
from conversations.ledger.lines import COUNTED, body_of
from conversations.ledger.restoring import FileNotThere, Restored
from conversations.ledger.types import ImportedLedger, ImportReport, LedgerReport, Line, Tally
from conversations.ledger.verifying import Verifier, lines_in, verified
from conversations.models import Conversation
from conversations.policy import typed_overrides
from conversations.scope import Scope
from conversations.store.derived_context import CostOf, fill_context, recount

BATCH_LINES = 500
BATCH_BYTES = 4 * 1024**2
# Files larger than this are collected on disk, not in memory.
SPOOL_BYTES = 8 * 1024**2


@dataclass(frozen=True)
class LedgerImporter:
    """Imports ledgers into one workspace."""

    scope: Scope
    workspace_id: int
    exporter: LedgerExporter
    cost_of: CostOf
    files: LargeFileService

    def run(self, path: Path, *, session_id: str | None = None, skip_existing: bool = False) -> ImportReport:
        """Import every conversation of the file.

        Raises Conflict for an existing one, unless `skip_existing`. Invalid, with nothing written, if the file does not
        verify. If one conversation fails, those before it stay imported: each is complete. `session_id` is another name
        for the only conversation of the file.
        """
        with path.open("rb") as file:
            report, sessions = self._verify(file, path.name)
            if session_id is not None and len(sessions) != 1:
                raise Invalid(f"{path.name} holds {len(sessions)} conversations; a new name fits only one.")
            there = self._there_already([session_id] if session_id is not None else sessions)
            if there and not skip_existing:
                raise Conflict(
                    f"The conversation {there[0][:80]!r} exists in this workspace already. Import it into another "
                    "workspace or under another name.",
                    code="conversation_exists",
                )
            imported = self._all(file, session_id, report, there)
        return ImportReport(
            file=path.name, line_hash=report.line_hash, conversations=tuple(imported), left_alone=tuple(there)
        )

    def _all(
        self, file: BinaryIO, session_id: str | None, report: LedgerReport, there: Sequence[str]
    ) -> list[ImportedLedger]:
        """Import all conversations, in several passes if some need files of later ones."""
        imported: dict[str, ImportedLedger] = {}
        while True:
            before = len(imported)
            refused = self._pass(file, session_id, report, imported, passed_over=set(there))
            if refused is None:
                return list(imported.values())
            if len(imported) == before:
                raise refused

    def _pass(
        self,
        file: BinaryIO,
        session_id: str | None,
        report: LedgerReport,
        imported: dict[str, ImportedLedger],
        *,
        passed_over: set[str],
    ) -> FileNotThere | None:
        """Import what can be imported now; return the first refusal for a missing file."""
        refused = None
        file.seek(0)
        with verified(lines_in(file), name=report.source) as lines:
            for line, body in lines:
                if line["type"] != "conversation":
                    continue
                name = session_id or line["session_id"]
                rest = _until_the_end(lines)
                if name not in passed_over and name not in imported:
                    try:
                        imported[name] = self._conversation(line, body, rest, name, report.line_hash)
                    except FileNotThere as missing:
                        refused = refused or missing
                # The lines that were not read: all of them, or those after a missing file.
                deque(rest, maxlen=0)
        return refused

    def _verify(self, file: BinaryIO, name: str) -> tuple[LedgerReport, list[str]]:
        sessions = []
        with Verifier() as verifier:
            for line in lines_in(file):
                values = verifier.feed(line)
                if values is not None and values["type"] == "conversation":
                    sessions.append(values["session_id"])
            report = verifier.finish(source=name)
        if not report.is_clean:
            first = report.findings[0]
            more = f", and {report.finding_count - 1} more" if report.finding_count > 1 else ""
            raise Invalid(
                f"{name} does not verify, so nothing was imported: line {first.line}, {first.detail} "
                f"[{first.code}]{more}.",
                code="ledger_does_not_verify",
            )
        return report, sessions

    def _there_already(self, sessions: Sequence[str]) -> list[str]:
        rows = Conversation.objects.filter(workspace_id=self.workspace_id, session_id__in=sessions)
        return sorted(rows.values_list("session_id", flat=True))

    def _conversation(
        self, first: Line, body: bytes, lines: Iterator[tuple[Line, bytes]], session_id: str, line_hash: str
    ) -> ImportedLedger:
        try:
            with transaction.atomic():
                return _Copy(self, session_id, line_hash).write(first, body, lines)
        except IntegrityError as refused:
            if not isinstance(refused.__cause__, UniqueViolation):
                raise Invalid(
                    f"The conversation {session_id[:80]!r} violates a constraint of the database."
                ) from refused
            raise Conflict(
                f"The conversation {session_id[:80]!r} cannot be imported here: a summary, run or file of it exists in "
                "this database already, maybe under another name. Nothing of it was written.",
                code="conversation_exists",
            ) from refused
        except DataError as refused:
            raise Invalid(
                f"The database cannot hold a value of {session_id[:80]!r}; nothing of it was written."
            ) from refused


def _until_the_end(lines: Iterator[tuple[Line, bytes]]) -> Iterator[tuple[Line, bytes]]:
    """Yield the remaining lines of a conversation."""
    for line, body in lines:
        yield line, body
        if line["type"] == "end":
            return


@dataclass
class _Copy:
    """Takes the lines of one conversation, inside the caller's transaction."""

    importer: LedgerImporter
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
        conversation = Conversation.objects.create(
            workspace_id=self.importer.workspace_id,
            session_id=self.session_id,
            created_at=datetime.fromisoformat(first["created_at"]),
        )
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
            else:
                self._take(line, len(body))
        self._flush()
        self._keep_file()
        self._end(conversation, last)
        fill_context(conversation.pk, cost_of=self.importer.cost_of)
        recount(conversation.pk)
        self._require_same(conversation, first["session_id"])
        return ImportedLedger(
            conversation_id=conversation.pk, session_id=self.session_id, counts=Tally(**last["counts"])
        )

    def _announce(self, conversation: Conversation, original: str) -> int:
        """Record the import; messages that the ledger marks as erased name this act."""
        renamed = {} if original == self.session_id else {"exported_as": original}
        act = AuditLog(self.importer.scope).record(
            Act.IMPORT_LEDGER,
            workspace_id=conversation.workspace_id,
            conversation_id=conversation.pk,
            target=self.session_id,
            detail={"line_hash": self.line_hash, **renamed},
        )
        return act.pk

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
            if line["bytes"] == "inline":
                self._bytes = tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES)  # noqa: SIM115 (closed by _keep_file)
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
                section = next(section for section in self.importer.exporter.sections if section.kind == kind)
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
        path = f"{self.importer.workspace_id}/{content_hash[:2]}/{content_hash}"
        if content is not None:
            with storing("A file cannot be stored"):
                if not self.importer.files.storage.exists(path):
                    self.importer.files.storage.save(path, File(content))
            hold_bytes(self.importer.files.storage, path)
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
        for line in self.importer.exporter.lines_of(conversation.pk):
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
