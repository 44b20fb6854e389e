"""Whole conversations out of the database and back: the ledger with what every room adds to it."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Self

from django.db import transaction
from django.db.models.functions import Collate

from compaction.ledger_sections import SECTIONS
from compaction.rendering import context_cost_of
from conversations.audit import Act, AuditLog
from conversations.cold_storage.cold_texts import ColdBlockDamaged, WhatIsLeft
from conversations.content.tokens import TokenEstimator
from conversations.errors import Conflict, Invalid
from conversations.ledger.continuing import Continuation, continuation_of, require_same
from conversations.ledger.file_bytes import FileBytes
from conversations.ledger.ledger_export import LedgerExporter
from conversations.ledger.ledger_import import LedgerImporter
from conversations.ledger.progress import Pen
from conversations.ledger.types import ExportReport, ImportReport, LedgerReport
from conversations.ledger.verifying import Verifier, lines_in
from conversations.models import Conversation, Workspace
from conversations.scope import Scope
from conversations.store.base import EVERYTHING
from conversations.store.context import hold, misfit_ranges, rebuild_context, recount
from integrity.anchors.expectations import NOTHING_EXPECTED, Expected
from integrity.rebuild import Rebuilt

# Of the sessions of a workspace, which may be many, so many are listed at a time.
PORTION = 500


@dataclass(frozen=True)
class Ledgers:
    """Writes ledgers, verifies them, and rebuilds from them, in one workspace."""

    tokens: TokenEstimator
    scope: Scope = EVERYTHING

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> Self:
        return cls(tokens=TokenEstimator.from_settings(), scope=scope)

    def lines(self, *, conversation_id: int | None = None, with_files: bool = True) -> Iterator[bytes]:
        """The ledger of one conversation, or of all in the order of their sessions, line by line.

        Each conversation is written as it was at one moment. NotFound if there is no such one. The export is on record
        before its first line, and again when the last line was taken or the reader has broken off.
        """
        pen = Pen()
        ids = self._conversations(conversation_id)
        lines = self._exporter(with_files).export(self._workspace.name, ids, pen=pen)
        return self._audited(lines, pen, conversation_id=conversation_id, with_files=with_files)

    def export(
        self, file: BinaryIO, *, name: str, conversation_id: int | None = None, with_files: bool = True
    ) -> ExportReport:
        """Write the ledger of one conversation, or of all."""
        pen = Pen()
        ids = self._conversations(conversation_id)
        lines = self._exporter(with_files).export(self._workspace.name, ids, pen=pen)
        audited = self._audited(lines, pen, conversation_id=conversation_id, with_files=with_files)
        return self._written(file, name, pen, audited)

    def resume(
        self, file: BinaryIO, *, name: str, conversation_id: int | None = None, with_files: bool = True
    ) -> ExportReport:
        """Go on with a ledger that broke off, or that was written when the conversation was shorter.

        The result is, byte for byte, what one export now would write; messages that are in the file already are not
        read again. Invalid if the file does not verify up to where it breaks off; Conflict if it is of something else,
        or of several conversations and whole, as the earlier ones would stay as they were.
        """
        found = continuation_of(file, name=name)
        if found is None:
            file.seek(0)
            file.truncate()
            return self.export(file, name=name, conversation_id=conversation_id, with_files=with_files)
        self._require_ours(found, conversation_id, name)
        ids = self._rest(found, conversation_id, name)
        file.seek(found.offset)
        file.truncate()
        pen = Pen(found.place)
        lines = self._exporter(with_files).export(self._workspace.name, ids, pen=pen)
        audited = self._audited(lines, pen, conversation_id=conversation_id, with_files=with_files)
        return self._written(file, name, pen, audited, continued_after=found.place.lines)

    def verify_file(self, file: BinaryIO, *, name: str, expected: Expected = NOTHING_EXPECTED) -> LedgerReport:
        """Compute anew everything that a ledger says, in one pass, and compare it with what was kept of it."""
        with Verifier() as verifier:
            return expected.verify(verifier, lines_in(file), source=name, has_all=False)

    def verify_live(self, *, conversation_id: int | None = None, expected: Expected = NOTHING_EXPECTED) -> LedgerReport:
        """The same of what an export would write now; a damaged cold block is a finding, and the rest is verified."""
        with Verifier() as verifier:
            told: set[int] = set()

            def tell(damage: ColdBlockDamaged) -> None:
                if damage.context["cold_block_id"] not in told:
                    told.add(damage.context["cold_block_id"])
                    verifier.findings.add(damage.code, damage.detail)

            exporter = replace(self._exporter(with_files=True), cold=lambda: WhatIsLeft(tell=tell))
            lines = exporter.export(self._workspace.name, self._conversations(conversation_id))
            return expected.verify(verifier, lines, source="the database", has_all=conversation_id is None)

    def import_file(self, path: Path, *, session_id: str | None = None, skip_existing: bool = False) -> ImportReport:
        """Rebuild the conversations of a ledger: see `LedgerImporter.run`."""
        importer = LedgerImporter(
            scope=self.scope,
            workspace_id=self._workspace.pk,
            exporter=self._exporter(with_files=True),
            cost_of=context_cost_of(self.tokens),
            keep_file=FileBytes(self.scope, self._workspace.pk).keep,
        )
        return importer.run(path, session_id=session_id, skip_existing=skip_existing)

    @transaction.atomic
    def rebuild(self, *, conversation_id: int) -> Rebuilt:
        """Derive context and counters anew from messages, summaries and lineage, and tell what that has changed.

        Canonical rows are only read. What cannot be derived is named: summaries that do not cover what they say.
        Raises NotFound, and Conflict where the lineage contradicts itself.
        """
        self.scope.conversation(conversation_id)
        hold([conversation_id])
        context = rebuild_context(conversation_id, cost_of=context_cost_of(self.tokens))
        counts = [recount(each) for each in context.conversation_ids]
        rebuilt = Rebuilt.of(context, counts, misfits=misfit_ranges(conversation_id))
        AuditLog(self.scope).record(
            Act.REBUILD,
            conversation_id=conversation_id,
            detail={
                "removed": len(context.removed),
                "added": len(context.added),
                "counters": rebuilt.counters_as_json(),
            },
        )
        return rebuilt

    def _audited(
        self, lines: Iterator[bytes], pen: Pen, *, conversation_id: int | None, with_files: bool
    ) -> Generator[bytes]:
        """The lines, with an act before the first of them and one behind the last that was taken.

        Two acts, as nothing runs in a process that is killed: an export without its second act was broken off so.
        """
        target = "" if conversation_id is None else self.scope.conversation(conversation_id).session_id
        continued_after = pen.place.lines
        begun = self._record(Act.BEGIN_EXPORT, conversation_id, target, {"with_files": with_files})
        is_whole = False
        try:
            yield from lines
            is_whole = True
        finally:
            # The lines are closed by now, and the transaction in which they were read is over.
            place = pen.place
            # Those of a conversation are added when it ends; the reader may have broken off before.
            counts = place.counts if place.session_id is None else place.counts + place.counts_of_it
            self._record(
                Act.EXPORT_LEDGER,
                conversation_id,
                target,
                {
                    "begun_by": begun,
                    "is_whole": is_whole,
                    "conversations": place.conversations,
                    "lines": place.lines,
                    "continued_after": continued_after,
                    **vars(counts),
                    "line_hash": place.line_hash,
                },
            )

    def _record(self, act: Act, conversation_id: int | None, target: str, detail: Mapping[str, Any]) -> int:
        with transaction.atomic():
            log = AuditLog(self.scope)
            return log.record(act, conversation_id=conversation_id, target=target, detail=detail).pk

    @property
    def _workspace(self) -> Workspace:
        if self.scope.workspace_id is None:
            raise Invalid("A ledger is of one workspace; say of which.")
        return Workspace.objects.get(pk=self.scope.workspace_id)

    def _exporter(self, with_files: bool) -> LedgerExporter:
        read = FileBytes(self.scope, self._workspace.pk).read if with_files else None
        return LedgerExporter(sections=SECTIONS, read_file=read)

    def _conversations(self, conversation_id: int | None, after: str | None = None) -> Iterator[int]:
        if conversation_id is not None:
            yield self.scope.conversation(conversation_id).pk
            return
        while found := self._sessions(after):
            yield from (id for id, _ in found)
            after = found[-1][1]

    def _sessions(self, after: str | None) -> list[tuple[int, str]]:
        """By name, character by character: in that order two databases have them, whatever their language."""
        rows = Conversation.objects.annotate(name=Collate("session_id", "C")).order_by("name")
        if after is not None:
            rows = rows.filter(name__gt=after)
        return list(self.scope.narrow(rows).values_list("conversation_id", "session_id")[:PORTION])

    def _require_ours(self, found: Continuation, conversation_id: int | None, name: str) -> None:
        if found.workspace != self._workspace.name:
            raise Conflict(f"{name} is a ledger of the workspace {found.workspace[:80]!r}.")
        if conversation_id is None and found.is_whole:
            raise Conflict(
                f"{name} is whole. A ledger of one conversation can be continued as it grows; of all, export anew."
            )
        if conversation_id is not None and found.finished:
            raise Conflict(f"{name} holds several conversations; it cannot be continued as the ledger of one.")

    def _rest(self, found: Continuation, conversation_id: int | None, name: str) -> Iterator[int]:
        """The conversations that are to be written: first the one that the file is in."""
        session_id = found.place.session_id
        if session_id is None:
            return self._conversations(conversation_id)
        rows = self.scope.narrow(Conversation.objects.filter(session_id=session_id))
        conversation = self.scope.conversation(conversation_id) if conversation_id is not None else rows.first()
        if conversation is None:
            raise Conflict(f"The conversation {session_id[:80]!r} in {name} is not there; export into another file.")
        require_same(conversation, found, name=name)
        return self._from(conversation, is_only=conversation_id is not None)

    def _from(self, conversation: Conversation, *, is_only: bool) -> Iterator[int]:
        yield conversation.pk
        if not is_only:
            yield from self._conversations(None, conversation.session_id)

    def _written(
        self, file: BinaryIO, name: str, pen: Pen, lines: Generator[bytes], *, continued_after: int = 0
    ) -> ExportReport:
        # Closed at once where the file cannot be written, so that the act says how far it came.
        with closing(lines):
            for line in lines:
                file.write(line)
        file.flush()
        return ExportReport(
            file=name,
            lines=pen.place.lines,
            conversations=pen.place.conversations,
            counts=pen.place.counts,
            line_hash=pen.place.line_hash,
            continued_after=continued_after,
        )
