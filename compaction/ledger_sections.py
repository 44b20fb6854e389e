"""The sections of compaction in a ledger: session summaries, runs, boundaries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet

from compaction.history.models import SessionSummary, SessionSummaryMemory
from compaction.history.types import HistoryKind
from compaction.models import CompactionBoundary, CompactionRun
from compaction.types import Outcome
from conversations import sql
from conversations.ledger.line_shapes import SHAPES, as_line
from conversations.ledger.types import Line
from conversations.models import Conversation, Message, Project
from conversations.types import ContextItemType, Level

_IN_ORDER = sql.load("compaction/history.sql")["session_summaries_in_order"]
# The columns of a session summary that are copied unchanged.
_SESSION = (
    "summary_id", "created_at", "first_seq", "last_seq", "earliest_at", "latest_at", "token_count", "token_counter",
    "level", "model", "prompt_version", "retention", "quality", "is_degraded", "supersedes_id",
)  # fmt: skip


class SessionSection:
    """The session summaries of a conversation.

    Arcs and epochs span several conversations: they are not written, but regenerated from the session summaries.
    """

    kind = "session_summary"

    def lines(self, conversation_id: int) -> Iterator[Line]:
        """Yield the summaries, each after the one that it supersedes."""
        found = SessionSummary.objects.readable().select_related("project").filter(conversation_id=conversation_id)
        by_id = found.in_bulk()
        for summary_id, sources in sql.rows(_IN_ORDER, [conversation_id]):
            yield _session_line(by_id[summary_id], json.loads(sources))

    def restore(self, conversation_id: int, lines: Sequence[Line], *, audit_id: int) -> None:
        """Insert the summaries and their links; `audit_id` marks the erased ones."""
        conversation = Conversation.objects.get(pk=conversation_id)
        SessionSummary.objects.bulk_create(_session_row(line, conversation, audit_id) for line in lines)
        seqs = {source for line in lines for source in line["sources"] if isinstance(source, int)}
        messages = Message.objects.filter(conversation_id=conversation_id, seq__in=seqs)
        ids = dict(messages.values_list("seq", "message_id"))
        SessionSummaryMemory.objects.bulk_create(
            [
                SessionSummaryMemory(
                    summary_id=line["summary_id"],
                    ordinal=ordinal,
                    item_type=ContextItemType.SUMMARY if isinstance(source, str) else ContextItemType.MESSAGE,
                    message_id=None if isinstance(source, str) else ids[source],
                    memory_summary_id=source if isinstance(source, str) else None,
                )
                for line in lines
                for ordinal, source in enumerate(line["sources"])
            ],
            batch_size=1_000,
        )


@dataclass
class Section:
    """Rows of one kind: writes them as lines of a ledger, and restores them."""

    kind: str
    rows: QuerySet[Any]
    order: tuple[str, ...]

    def lines(self, conversation_id: int) -> Iterator[Line]:
        ordered = self.rows.filter(conversation_id=conversation_id).order_by(*self.order)
        for row in ordered.only(*SHAPES[self.kind]).iterator():
            yield as_line(self.kind, row)

    def restore(self, conversation_id: int, lines: Sequence[Line], *, audit_id: int) -> None:
        model, names = self.rows.model, SHAPES[self.kind]
        model.objects.bulk_create(
            model(conversation_id=conversation_id, **{name: line[name] for name in names}) for line in lines
        )


SECTIONS = (
    SessionSection(),
    # A run in progress is not exported: its counts are not final.
    Section("run", CompactionRun.objects.exclude(outcome=Outcome.RUNNING), ("started_at", "run_id")),
    Section("boundary", CompactionBoundary.objects.all(), ("recorded_at", "last_seq", "host_reference")),
)


def _session_line(row: SessionSummary, sources: Sequence[int | str]) -> Line:
    is_erased = row.erased_by_id is not None
    return as_line(
        SessionSection.kind,
        row,
        project=None if row.project is None else row.project.name,
        content=None if is_erased else row.content,
        sources=sources,
        erased=is_erased,
    )


def _session_row(line: Line, conversation: Conversation, audit_id: int) -> SessionSummary:
    return SessionSummary(
        **{name: line[name] for name in _SESSION},
        workspace_id=conversation.workspace_id,
        project=None if line["project"] is None else _project(conversation, line["project"]),
        conversation=conversation,
        kind=HistoryKind.SESSION,
        depth=HistoryKind.SESSION.depth,
        confidence=Level(line["level"]).confidence,
        content=line["content"] or "",
        summary_hash=bytes.fromhex(line["summary_hash"]),
        erased_by_id=audit_id if line["erased"] else None,
    )


def _project(conversation: Conversation, name: str) -> Project:
    return Project.objects.get_or_create(workspace_id=conversation.workspace_id, name=name)[0]
