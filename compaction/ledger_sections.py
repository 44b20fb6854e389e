"""The sections of compaction in a ledger: session summaries, runs, boundaries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from compaction.history.models import SessionSummary, SessionSummaryMemory
from compaction.history.types import HistoryKind
from compaction.models import CompactionBoundary, CompactionRun
from compaction.types import Outcome
from conversations import sql
from conversations.ledger.line_shapes import SHAPES
from conversations.ledger.lines import as_text
from conversations.ledger.types import Line
from conversations.models import Conversation, Message, Project
from conversations.types import ContextItemType, Level

_IN_ORDER = sql.load("compaction/history.sql")["session_summaries_in_order"]
_SESSION_MOMENTS = ("created_at", "earliest_at", "latest_at")
# The columns of a session summary that are copied unchanged.
_SESSION = (
    "summary_id", "first_seq", "last_seq", "token_count", "token_counter", "level", "model", "prompt_version",
    "retention", "quality", "is_degraded", "supersedes_id",
)  # fmt: skip
# The columns of a run without its job, whose id has no meaning in another database.
_RUN = (
    "run_id", "reason", "outcome", "started_at", "finished_at", "tokens_before", "tokens_after", "leaf_summaries",
    "condensed_summaries", "redone_summaries", "details",
)  # fmt: skip
_BOUNDARY = ("host_reference", "last_seq", "recorded_at", "metadata")
_MOMENTS = ("started_at", "finished_at", "recorded_at")


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
    fields: tuple[str, ...]
    order: tuple[str, ...]

    def lines(self, conversation_id: int) -> Iterator[Line]:
        ordered = self.rows.filter(conversation_id=conversation_id).order_by(*self.order)
        for values in ordered.values(*self.fields).iterator():
            yield {"type": self.kind, **_as_line(values)}

    def restore(self, conversation_id: int, lines: Sequence[Line], *, audit_id: int) -> None:
        model = self.rows.model
        model.objects.bulk_create(model(conversation_id=conversation_id, **_read(line, self.fields)) for line in lines)


SECTIONS = (
    SessionSection(),
    # A run in progress is not exported: its counts are not final.
    Section("run", CompactionRun.objects.exclude(outcome=Outcome.RUNNING), _RUN, ("started_at", "run_id")),
    Section("boundary", CompactionBoundary.objects.all(), _BOUNDARY, ("recorded_at", "last_seq", "host_reference")),
)


def _session_line(row: SessionSummary, sources: Sequence[int | str]) -> Line:
    is_erased = row.erased_by_id is not None
    values = {
        **{name: getattr(row, name) for name in _SESSION},
        **{name: as_text(getattr(row, name)) for name in _SESSION_MOMENTS},
        "project": None if row.project is None else row.project.name,
        "content": None if is_erased else row.content,
        "sources": sources,
        "erased": is_erased,
        "summary_hash": bytes(row.summary_hash).hex(),
    }
    return {"type": SessionSection.kind, **{name: values[name] for name in SHAPES[SessionSection.kind]}}


def _session_row(line: Line, conversation: Conversation, audit_id: int) -> SessionSummary:
    return SessionSummary(
        **{name: line[name] for name in _SESSION},
        **{name: datetime.fromisoformat(line[name]) for name in _SESSION_MOMENTS},
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


def _as_line(values: dict[str, Any]) -> Line:
    return {name: as_text(value) if isinstance(value, datetime) else value for name, value in values.items()}


def _read(line: Line, names: Sequence[str]) -> Line:
    return {
        name: datetime.fromisoformat(line[name]) if name in _MOMENTS and line[name] is not None else line[name]
        for name in names
    }
