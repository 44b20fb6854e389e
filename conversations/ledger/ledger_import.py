"""Import conversations whose export gives the same lines as the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from django.db import DataError, IntegrityError, transaction
from psycopg.errors import UniqueViolation

from conversations.errors import Conflict, Invalid
from conversations.files.large_files import LargeFileService
from conversations.ledger.copying import Copy
from conversations.ledger.ledger_export import LedgerExporter
from conversations.ledger.restoring import FileNotThere
from conversations.ledger.types import ImportedLedger, ImportReport, LedgerReport, Line
from conversations.ledger.verifying import Verifier, lines_in, verified
from conversations.models import Conversation
from conversations.scope import Scope
from conversations.store.context import CostOf


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
        """Import all conversations, each after those whose files it needs."""
        imported: dict[str, ImportedLedger] = {}
        waiting: dict[str, FileNotThere] = {}
        before = -1
        while True:
            is_at_its_end = self._pass(file, session_id, report, imported, waiting, passed_over=set(there))
            if is_at_its_end and not waiting:
                return list(imported.values())
            if is_at_its_end:
                if len(imported) == before:
                    raise next(iter(waiting.values()))
                before = len(imported)
                waiting.clear()

    def _pass(
        self,
        file: BinaryIO,
        session_id: str | None,
        report: LedgerReport,
        imported: dict[str, ImportedLedger],
        waiting: dict[str, FileNotThere],
        *,
        passed_over: set[str],
    ) -> bool:
        """Import the remaining conversations up to one that must wait.

        Return whether none had to.
        """
        file.seek(0)
        with verified(lines_in(file), name=report.source) as lines:
            for line, body in lines:
                if line["type"] != "conversation":
                    continue
                name = session_id or line["session_id"]
                if name in passed_over or name in imported or name in waiting:
                    _pass_over(lines)
                    continue
                try:
                    imported[name] = self._conversation(line, body, lines, name, report.line_hash)
                except FileNotThere as missing:
                    waiting[name] = missing
                    return False
        return True

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
                copy = Copy(
                    scope=self.scope,
                    workspace_id=self.workspace_id,
                    exporter=self.exporter,
                    cost_of=self.cost_of,
                    files=self.files,
                    session_id=session_id,
                    line_hash=line_hash,
                )
                return copy.write(first, body, lines)
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


def _pass_over(lines: Iterator[tuple[Line, bytes]]) -> None:
    """Skip the lines of a conversation."""
    for line, _ in lines:
        if line["type"] == "end":
            return
