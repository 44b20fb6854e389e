"""Rebuilds conversations from a ledger, each in one transaction, and only if it then says what the ledger says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from django.db import DataError, IntegrityError, transaction
from psycopg.errors import UniqueViolation

from conversations.errors import Conflict, Invalid
from conversations.ledger.copying import Copy, KeepFile
from conversations.ledger.ledger_export import LedgerExporter
from conversations.ledger.restoring import FileNotThere
from conversations.ledger.types import ImportedLedger, ImportReport, LedgerReport, Line
from conversations.ledger.verifying import Verifier, lines_in, verified
from conversations.models import Conversation
from conversations.scope import Scope
from conversations.store.context import CostOf


@dataclass(frozen=True)
class LedgerImporter:
    """Writes into one workspace what a ledger says, and what follows from it."""

    scope: Scope
    workspace_id: int
    exporter: LedgerExporter
    cost_of: CostOf
    keep_file: KeepFile

    def run(self, path: Path, *, session_id: str | None = None, skip_existing: bool = False) -> ImportReport:
        """Rebuild every conversation of the file; Conflict for one that is there already, unless told to skip those.

        Invalid, and nothing is written, if the file does not verify. Conversations that were done before a later one
        failed stay: each is whole. `session_id` is another name for the one conversation of the file.
        """
        with path.open("rb") as file:
            report, sessions = self._verify(file, path.name)
            if session_id is not None and len(sessions) != 1:
                raise Invalid(f"{path.name} holds {len(sessions)} conversations; one name is for one of them.")
            there = self._there_already([session_id] if session_id is not None else sessions)
            if there and not skip_existing:
                raise Conflict(
                    f"There is a conversation {there[0][:80]!r} in this workspace already; a ledger is only imported "
                    "where it is not. Choose another workspace or another name.",
                    code="conversation_exists",
                )
            imported = self._all(file, session_id, report, there)
        return ImportReport(
            file=path.name, line_hash=report.line_hash, conversations=tuple(imported), left_alone=tuple(there)
        )

    def _all(
        self, file: BinaryIO, session_id: str | None, report: LedgerReport, there: Sequence[str]
    ) -> list[ImportedLedger]:
        """Rebuild all of them, each behind those whose files it names."""
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
        """Rebuild what is left, up to one that has to wait; whether none had to."""
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
                    keep_file=self.keep_file,
                    session_id=session_id,
                    line_hash=line_hash,
                )
                return copy.write(first, body, lines)
        except IntegrityError as refused:
            if not isinstance(refused.__cause__, UniqueViolation):
                raise Invalid(f"The conversation {session_id[:80]!r} is none that LCM could have.") from refused
            raise Conflict(
                f"The conversation {session_id[:80]!r} cannot be imported here: something in it, such as a summary, a "
                "run or a file, is in this database already, maybe under another name. Nothing of it was written.",
                code="conversation_exists",
            ) from refused
        except DataError as refused:
            raise Invalid(
                f"The database cannot hold a value of {session_id[:80]!r}; nothing of it was written."
            ) from refused


def _pass_over(lines: Iterator[tuple[Line, bytes]]) -> None:
    """Read on to the end of a conversation that is left alone."""
    for line, _ in lines:
        if line["type"] == "end":
            return
