"""The sections of compaction in a ledger: session summaries, runs, boundaries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from compaction.history.history_ledger import SessionSection
from compaction.models import CompactionBoundary, CompactionRun
from compaction.types import Outcome
from conversations.ledger.lines import as_text
from conversations.ledger.types import Line

# The columns of a run without its job, whose id has no meaning in another database.
_RUN = (
    "run_id", "reason", "outcome", "started_at", "finished_at", "tokens_before", "tokens_after", "leaf_summaries",
    "condensed_summaries", "redone_summaries", "details",
)  # fmt: skip
_BOUNDARY = ("host_reference", "last_seq", "recorded_at", "metadata")
_MOMENTS = ("started_at", "finished_at", "recorded_at")


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


def _as_line(values: dict[str, Any]) -> Line:
    return {name: as_text(value) if isinstance(value, datetime) else value for name, value in values.items()}


def _read(line: Line, names: Sequence[str]) -> Line:
    return {
        name: datetime.fromisoformat(line[name]) if name in _MOMENTS and line[name] is not None else line[name]
        for name in names
    }
