"""Import conversations whose export gives the same lines as the ledger."""

from __future__ import annotations

import base64
import hashlib
import tempfile
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, BinaryIO

from django.core.files.base import File
from django.db import DataError, IntegrityError, transaction
from psycopg.errors import UniqueViolation

from conversations.audit import Act, AuditLog
from conversations.errors import Conflict, Invalid
from conversations.files.large_files import SPOOL_BYTES, LargeFileService, lock_bytes, path_of_bytes
from conversations.files.storage import storing
from conversations.ledger.ledger_export import LedgerExporter
from conversations.ledger.lines import LineWriter, batches, body_in
from conversations.ledger.restoring import NeedsAnother, ParentNotThere, Restored
from conversations.ledger.types import ImportedLedger, ImportReport, LedgerReport, Line, Tally
from conversations.ledger.verifying import Verifier, lines_in, verified
from conversations.models import Conversation
from conversations.policy import typed_overrides
from conversations.scope import Scope
from conversations.store.derived_context import CostOf, fill_context, recount

BATCH_LINES = 500
BATCH_BYTES = 4 * 1024**2

# One hash over the lines of each type.
_Digests = defaultdict[str, Any]


@dataclass(frozen=True)
class LedgerImporter:
    """Imports ledgers into one workspace."""

    scope: Scope
    workspace_id: int
    exporter: LedgerExporter
    cost_of: CostOf
    files: LargeFileService
    # The paths of bytes that this import has stored.
    _stored: list[str] = field(default_factory=list, init=False)

    def run(self, path: Path, *, session_id: str | None = None, skip_existing: bool = False) -> ImportReport:
        """Import every conversation of the file.

        Raises Conflict if a conversation exists already, unless `skip_existing`. Raises Invalid, and writes nothing, if
        the file fails verification. Each conversation is imported in its own transaction: if one fails, earlier ones
        stay. Parents are imported before their children. `session_id` renames the only conversation of a file.
        """
        try:
            return self._run(path, session_id=session_id, skip_existing=skip_existing)
        finally:
            # An erasure cannot find bytes without a row.
            self.files.discard(self._stored)

    def _run(self, path: Path, *, session_id: str | None, skip_existing: bool) -> ImportReport:
        with path.open("rb") as file:
            report, sessions = self._verify(file, path.name)
            if session_id is not None and len(sessions) != 1:
                raise Invalid(f"{path.name} holds {len(sessions)} conversations; only one can get a new session id.")
            named = [session_id] if session_id is not None else list(sessions)
            rows = Conversation.objects.filter(workspace_id=self.workspace_id, session_id__in=named)
            there = sorted(rows.values_list("session_id", flat=True))
            if there and not skip_existing:
                raise Conflict(
                    f"The conversation {there[0][:80]!r} exists in this workspace already. Import it into another "
                    "database. A conversation of messages alone can also have another name or another workspace.",
                    code="conversation_exists",
                )
            done: dict[str, ImportedLedger | None] = dict.fromkeys(there)
            before = -1
            # Several passes, if conversations need files or parents that come later in the file.
            while refused := self._pass(file, session_id, report, done, sessions):
                if len(done) == before:
                    raise refused
                before = len(done)
        imported = tuple(filter(None, done.values()))
        return ImportReport(path.name, report.line_hash, conversations=imported, left_alone=tuple(there))

    def _pass(
        self,
        file: BinaryIO,
        session_id: str | None,
        report: LedgerReport,
        done: dict[str, ImportedLedger | None],
        parents: Mapping[str, str | None],
    ) -> NeedsAnother | None:
        """Import what is possible now; return the first error for a missing dependency."""
        refused: NeedsAnother | None = None
        file.seek(0)
        with verified(lines_in(file), name=report.source) as lines:
            for line, body in lines:
                if line["type"] != "conversation":
                    continue
                name = session_id or line["session_id"]
                rest = _until_the_end(lines)
                parent = parents[line["session_id"]]
                if name not in done and parent is not None and parent in parents and parent not in done:
                    # This conversation waits for its parent, which is in this file, too.
                    refused = refused or ParentNotThere(name, parent)
                elif name not in done:
                    try:
                        done[name] = self._conversation(line, body, rest, name, report.line_hash)
                    except NeedsAnother as missing:
                        refused = refused or missing
                # Skip the lines of this conversation that were not read.
                deque(rest, maxlen=0)
        return refused

    def _verify(self, file: BinaryIO, name: str) -> tuple[LedgerReport, dict[str, str | None]]:
        """Verify the file; return the report, and each session's parent session."""
        sessions: dict[str, str | None] = {}
        with Verifier() as verifier:
            for line in lines_in(file):
                values = verifier.feed(line)
                if values is not None and values["type"] == "end":
                    sessions[values["session_id"]] = values.get("parent_session_id")
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

    def _conversation(
        self, first: Line, body: bytes, lines: Iterator[tuple[Line, bytes]], session_id: str, line_hash: str
    ) -> ImportedLedger:
        try:
            with transaction.atomic():
                return self._copy(first, body, lines, session_id, line_hash)
        except IntegrityError as refused:
            if not isinstance(refused.__cause__, UniqueViolation):
                raise Invalid(
                    f"The conversation {session_id[:80]!r} violates a constraint of the database."
                ) from refused
            raise Conflict(
                f"The conversation {session_id[:80]!r} cannot be imported here: a summary, run or file of it exists in "
                "this database already, and their ids are unique. Nothing was written. Import it into another "
                "database; `lcm fork` copies a conversation within one.",
                code="conversation_exists",
            ) from refused
        except DataError as refused:
            raise Invalid(
                f"The database cannot store a value of {session_id[:80]!r}; nothing of it was written."
            ) from refused

    def _copy(
        self, first: Line, body: bytes, lines: Iterator[tuple[Line, bytes]], session_id: str, line_hash: str
    ) -> ImportedLedger:
        """Write the conversation, and compare an export of it with the lines.

        Raises Invalid, for the caller to roll back, if an export would differ.
        """
        conversation = Conversation.objects.create(
            workspace_id=self.workspace_id, session_id=session_id, created_at=first["created_at"]
        )
        given: _Digests = defaultdict(hashlib.sha256)
        original, last = first["session_id"], Line()
        renamed = {} if original == session_id else {"exported_as": original}
        # Messages that the ledger marks as erased refer to this audit entry.
        act = AuditLog(self.scope).record(
            Act.IMPORT_LEDGER,
            workspace_id=self.workspace_id,
            conversation_id=conversation.pk,
            target=session_id,
            detail={"line_hash": line_hash, **renamed},
        )
        rows = Restored(conversation.pk, self.workspace_id, session_id, audit_id=act.pk)
        restore: dict[str, Callable[[Sequence[Line]], None]] = {
            "message": rows.messages,
            "part": rows.parts,
            "head_move": rows.head_moves,
            "journal": rows.journal,
            "summary": rows.summaries,
            "reference": rows.references,
            **{each.kind: partial(each.restore, conversation.pk, audit_id=act.pk) for each in self.exporter.sections},
        }
        _note(given, first, body)
        for kind, group in groupby(_noted(lines, given), key=_kind_of_row):
            if kind == "end":
                [(last, _)] = group
            elif kind == "file":
                self._files(rows, (line for line, _ in group))
            else:
                for batch in batches(group, lambda pair: len(pair[1]), most=BATCH_LINES, largest=BATCH_BYTES):
                    restore[kind]([line for line, _ in batch])
        conversation.title, conversation.metadata = last["title"], last["metadata"]
        conversation.overrides = typed_overrides(last["overrides"])
        conversation.updated_at = last["updated_at"]
        belongings = rows.belongings(last)
        for name, value in belongings.items():
            setattr(conversation, name, value)
        conversation.save(update_fields=["title", "metadata", "overrides", "updated_at", *belongings])
        fill_context(conversation.pk, cost_of=self.cost_of)
        recount(conversation.pk)
        self._require_same(conversation.pk, given, original)
        return ImportedLedger(conversation.pk, session_id, counts=Tally(**last["counts"]))

    def _files(self, rows: Restored, lines: Iterable[Line]) -> None:
        """Store the files; each file's line is followed by the lines of its bytes."""
        for _, group in groupby(lines, key=itemgetter("file_id")):
            chunks = iter(group)
            file = next(chunks)
            with tempfile.SpooledTemporaryFile(max_size=SPOOL_BYTES) as content:
                content.writelines(base64.b64decode(chunk["base64"]) for chunk in chunks)
                content.seek(0)
                path = self._store(file["content_hash"], content if file["bytes"] == "inline" else None)
            rows.file(file, storage_uri=path)

    def _store(self, content_hash: str | None, content: IO[bytes] | None) -> str:
        """Return the path of the bytes with this hash, and store them if missing.

        A file without bytes in the ledger gets the same path: another conversation may have stored these bytes.
        """
        if content_hash is None:
            return ""
        path = path_of_bytes(self.workspace_id, content_hash)
        if content is not None:
            with storing("A file cannot be stored"):
                if not self.files.storage.exists(path):
                    self._stored.append(self.files.storage.save(path, File(content)))
            lock_bytes(self.files.storage, path)
        return path

    def _require_same(self, conversation_id: int, given: _Digests, original: str) -> None:
        exported: _Digests = defaultdict(hashlib.sha256)
        writer = LineWriter()
        for line in self.exporter.lines(conversation_id, writer):
            named = line | {"session_id": original} if "session_id" in line else line
            _note(exported, named, body_in(writer.write(named)))
        if wrong := _summed(given) ^ _summed(exported):
            raise Invalid(
                f"An export of {original[:80]!r} would have other {min(wrong)[0]} lines, so it was not imported. The "
                "ledger may be from another version of LCM.",
                code="ledger_not_reproducible",
            )


def _note(digests: _Digests, line: Line, body: bytes) -> None:
    digests[line["type"]].update(body + b"\n")


def _summed(digests: _Digests) -> set[tuple[str, str]]:
    return {(kind, digest.hexdigest()) for kind, digest in digests.items()}


def _noted(lines: Iterable[tuple[Line, bytes]], digests: _Digests) -> Iterator[tuple[Line, bytes]]:
    for line, body in lines:
        _note(digests, line, body)
        yield line, body


def _kind_of_row(pair: tuple[Line, bytes]) -> str:
    kind: str = pair[0]["type"]
    return "file" if kind == "bytes" else kind


def _until_the_end(lines: Iterator[tuple[Line, bytes]]) -> Iterator[tuple[Line, bytes]]:
    """Yield the remaining lines of a conversation."""
    for line, body in lines:
        yield line, body
        if line["type"] == "end":
            return
