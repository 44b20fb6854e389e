"""Export, continue, verify and import ledgers; rebuild contexts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, Self

from django.db import transaction
from django.db.models.functions import Collate

from compaction.ledger_sections import SECTIONS
from compaction.rendering import context_cost_of
from conversations.audit import Act, AuditLog
from conversations.cold_storage.cold_texts import ColdBlockDamaged, readable_texts
from conversations.content.tokens import TokenEstimator
from conversations.errors import Conflict, Invalid
from conversations.files.large_files import LargeFileService
from conversations.ledger.ledger_export import Continuation, LedgerExporter, continuation_of, require_same
from conversations.ledger.ledger_import import LedgerImporter
from conversations.ledger.lines import LineWriter
from conversations.ledger.types import ExportReport, ImportReport, LedgerReport
from conversations.ledger.verifying import Verifier, lines_in
from conversations.models import Conversation, Message, Workspace
from conversations.scope import EVERYTHING, Scope
from conversations.store.derived_context import (
    ContextChange,
    CountsChange,
    ItemRow,
    lock_conversations,
    misfit_ranges,
    rebuild_context,
    recount,
)
from integrity.anchors.expectations import NOTHING_EXPECTED, Expected

# The conversations of a workspace are read in portions of this size.
PORTION = 500
# A rebuild lists at most this many removed items, and this many added ones.
MOST_LISTED = 100


@dataclass(frozen=True)
class CounterChange:
    """A counter that differed from its recount."""

    conversation_id: int
    name: str
    before: int | str
    after: int | str


@dataclass(frozen=True)
class ItemChange:
    """One item that was removed from the context or added to it (`change`)."""

    change: str
    conversation_id: int
    ordinal: int
    id: str
    token_count: int


@dataclass(frozen=True)
class Rebuilt:
    """The changes of a rebuild: all are counted, the first ones listed."""

    conversation_id: int
    is_changed: bool
    items_removed: int
    items_added: int
    items: tuple[ItemChange, ...] = ()
    counters: tuple[CounterChange, ...] = ()
    # Summaries whose range differs from the range of their sources. Only a ledger or a backup can restore them.
    misfit_summaries: tuple[str, ...] = ()

    @classmethod
    def of(cls, context: ContextChange, counts: Sequence[CountsChange], *, misfits: tuple[str, ...]) -> Rebuilt:
        listed = [("removed", row) for row in context.removed[:MOST_LISTED]]
        listed += [("added", row) for row in context.added[:MOST_LISTED]]
        return cls(
            conversation_id=context.conversation_id,
            is_changed=context.is_needed or any(change.is_needed for change in counts),
            items_removed=len(context.removed),
            items_added=len(context.added),
            items=tuple(_item(change, row) for change, row in listed),
            counters=tuple(
                CounterChange(change.conversation_id, name, before, vars(change.after)[name])
                for change in counts
                for name, before in vars(change.before).items()
                if before != vars(change.after)[name]
            ),
            misfit_summaries=misfits,
        )


@dataclass(frozen=True)
class Ledgers:
    """The ledgers of one workspace."""

    tokens: TokenEstimator
    scope: Scope = EVERYTHING

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> Self:
        return cls(tokens=TokenEstimator.from_settings(), scope=scope)

    def lines(self, *, conversation_id: int | None = None, with_files: bool = True) -> Generator[bytes, None, None]:
        """Yield the ledger of one conversation, or of all, line by line.

        Each conversation is read in one snapshot. The audit log records the export before the first line, and again
        after the last line or when the reader stops. Raises NotFound if the conversation does not exist.
        """
        return self._export_audited(LineWriter(), self._conversations(conversation_id), conversation_id, with_files)

    def export(
        self, file: BinaryIO, *, name: str, conversation_id: int | None = None, with_files: bool = True
    ) -> ExportReport:
        """Write the ledger of one conversation, or of all, to a file."""
        writer = LineWriter()
        lines = self._export_audited(writer, self._conversations(conversation_id), conversation_id, with_files)
        return self._write(file, name, writer, lines)

    def resume(
        self, file: BinaryIO, *, name: str, conversation_id: int | None = None, with_files: bool = True
    ) -> ExportReport:
        """Continue a ledger that was interrupted, or whose conversation has grown since.

        The result is byte for byte the same as a new export. Messages that the file already has are not read from the
        database again. Raises Invalid if the file does not verify up to its end. Raises Conflict if it belongs to
        another conversation, or is a complete ledger of several, because the earlier ones would stay outdated.
        """
        found = continuation_of(file, name=name)
        if found is None:
            file.seek(0)
            file.truncate()
            return self.export(file, name=name, conversation_id=conversation_id, with_files=with_files)
        self._require_ours(found, conversation_id, name)
        ids = self._remaining_conversations(found, conversation_id, name)
        file.seek(found.offset)
        file.truncate()
        writer = LineWriter(found.place)
        lines = self._export_audited(writer, ids, conversation_id, with_files)
        return self._write(file, name, writer, lines, continued_after=found.place.lines)

    def verify_file(self, file: BinaryIO, *, name: str, expected: Expected = NOTHING_EXPECTED) -> LedgerReport:
        """Verify a ledger in one pass, and compare it with the expected evidence."""
        with Verifier() as verifier:
            return expected.verify(verifier, lines_in(file), source=name, has_all=False)

    def verify_live(self, *, conversation_id: int | None = None, expected: Expected = NOTHING_EXPECTED) -> LedgerReport:
        """Verify the lines that an export would write now.

        A damaged cold block becomes a finding, and verification continues with the other lines.
        """
        with Verifier() as verifier:
            damaged: set[int] = set()

            def add_once(damage: ColdBlockDamaged) -> None:
                if damage.context["cold_block_id"] not in damaged:
                    damaged.add(damage.context["cold_block_id"])
                    verifier.findings.add(damage.code, damage.detail)

            exporter = replace(self._exporter(with_files=True), cold=lambda: readable_texts(on_damage=add_once))
            name = self._workspace.name
            lines = exporter.export(name, self._conversations(conversation_id))
            return expected.verify(
                verifier, lines, source=f"workspace {name} of the database", has_all=conversation_id is None
            )

    def import_file(self, path: Path, *, session_id: str | None = None, skip_existing: bool = False) -> ImportReport:
        """Import the conversations of a ledger: see `LedgerImporter.run`."""
        importer = LedgerImporter(
            scope=self.scope,
            workspace_id=self._workspace.pk,
            exporter=self._exporter(with_files=True),
            cost_of=context_cost_of(self.tokens),
            files=LargeFileService.from_settings(self.scope),
        )
        return importer.run(path, session_id=session_id, skip_existing=skip_existing)

    @transaction.atomic
    def rebuild(self, *, conversation_id: int) -> Rebuilt:
        """Derive context and counters again, and return the changes.

        Messages and summaries are only read. The response lists summaries whose recorded range is wrong; a rebuild
        cannot correct them. Raises NotFound; Conflict `lineage_contradicts_itself`.
        """
        self.scope.conversation(conversation_id)
        lock_conversations([conversation_id])
        context = rebuild_context(conversation_id, cost_of=context_cost_of(self.tokens))
        counts = [recount(each) for each in context.conversation_ids]
        rebuilt = Rebuilt.of(context, counts, misfits=misfit_ranges(conversation_id))
        AuditLog(self.scope).record(
            Act.REBUILD,
            conversation_id=conversation_id,
            detail={
                "removed": len(context.removed),
                "added": len(context.added),
                "counters": [vars(counter) for counter in rebuilt.counters],
            },
        )
        return rebuilt

    def _export_audited(
        self, writer: LineWriter, ids: Iterator[int], conversation_id: int | None, with_files: bool
    ) -> Generator[bytes, None, None]:
        """Yield the lines; write an audit entry before the first and after the last.

        A killed process writes no second entry, so an export without one was interrupted.
        """
        target = "" if conversation_id is None else self.scope.conversation(conversation_id).session_id
        continued_after = writer.place.lines
        begun = self._record(Act.BEGIN_EXPORT, conversation_id, target, {"with_files": with_files})
        is_whole = False
        try:
            yield from self._exporter(with_files).export(self._workspace.name, ids, writer=writer)
            is_whole = True
        finally:
            # At this point the generator of the lines is closed, and its transaction has ended.
            place = writer.place
            # `counts` does not yet include a conversation that is not finished: the reader may have stopped within it.
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
            raise Invalid("A ledger belongs to one workspace; name a workspace.")
        return Workspace.objects.get(pk=self.scope.workspace_id)

    def _exporter(self, with_files: bool) -> LedgerExporter:
        files = replace(LargeFileService.from_settings(self.scope), with_quarantined=True)
        return LedgerExporter(sections=SECTIONS, files=files if with_files else None)

    def _conversations(self, conversation_id: int | None, after: str | None = None) -> Iterator[int]:
        if conversation_id is not None:
            yield self.scope.conversation(conversation_id).pk
            return
        while found := self._sessions(after):
            yield from (id for id, _ in found)
            after = found[-1][1]

    def _sessions(self, after: str | None) -> list[tuple[int, str]]:
        """Read ids and session ids, in an order that does not depend on the collation."""
        rows = Conversation.objects.annotate(name=Collate("session_id", "C")).order_by("name")
        if after is not None:
            rows = rows.filter(name__gt=after)
        return list(self.scope.narrow(rows).values_list("conversation_id", "session_id")[:PORTION])

    def _require_ours(self, found: Continuation, conversation_id: int | None, name: str) -> None:
        if found.workspace != self._workspace.name:
            raise Conflict(f"{name} is a ledger of workspace {found.workspace[:80]!r}; export to another file.")
        if conversation_id is None and found.is_whole:
            raise Conflict(
                f"{name} is complete. Only a ledger of one conversation can be continued; export all of them again."
            )
        if conversation_id is not None and found.place.conversations:
            raise Conflict(f"{name} holds several conversations; continue it with --all, or export to another file.")

    def _remaining_conversations(self, found: Continuation, conversation_id: int | None, name: str) -> Iterator[int]:
        """Return the ids of the conversations to write, the unfinished one first."""
        session_id = found.place.session_id
        if session_id is None:
            return self._conversations(conversation_id)
        rows = self.scope.narrow(Conversation.objects.filter(session_id=session_id))
        conversation = self.scope.conversation(conversation_id) if conversation_id is not None else rows.first()
        if conversation is None:
            raise Conflict(f"The conversation {session_id[:80]!r} in {name} does not exist; export to another file.")
        require_same(conversation, found, name=name)
        if conversation_id is None:
            self._require_unchanged(found, session_id, name)
        later = self._conversations(None, session_id) if conversation_id is None else ()
        return chain([conversation.pk], later)

    def _require_unchanged(self, found: Continuation, session_id: str, name: str) -> None:
        """Raise Conflict if a conversation before this one is new, or has other messages."""
        named = Conversation.objects.annotate(name=Collate("session_id", "C"))
        rows = self.scope.narrow(named.filter(name__lt=session_id))
        lost = Message.objects.filter(erased_by__isnull=False, conversation__in=rows.values("pk"))
        erased = Counter(lost.values_list("conversation__session_id", flat=True))
        stored = {each: (next_seq - 1, erased[each]) for each, next_seq in rows.values_list("session_id", "next_seq")}
        if stored != {each: counts for each, counts in found.ended.items() if each != session_id}:
            raise Conflict(f"Conversations in {name} have grown or were erased since. Remove it, and export all again.")

    def _write(
        self, file: BinaryIO, name: str, writer: LineWriter, lines: Generator[bytes], *, continued_after: int = 0
    ) -> ExportReport:
        # If the file cannot be written, the generator is closed at once, so that the audit entry has the right counts.
        with closing(lines):
            for line in lines:
                file.write(line)
        file.flush()
        return ExportReport(
            file=name,
            lines=writer.place.lines,
            conversations=writer.place.conversations,
            counts=writer.place.counts,
            line_hash=writer.place.line_hash,
            continued_after=continued_after,
        )


def _item(change: str, row: ItemRow) -> ItemChange:
    shown = row.summary_id if row.message_id is None else f"msg_{row.message_id}"
    return ItemChange(change, row.conversation_id, row.ordinal, shown or "", row.token_count)
