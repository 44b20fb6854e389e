"""The sections that compaction adds to a ledger: runs and boundaries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from compaction.models import CompactionBoundary, CompactionRun
from compaction.types import Outcome
from conversations.ledger.lines import as_text
from conversations.ledger.types import Line

# Not the job of a run, which is this database's own.
_RUN = (
    "run_id", "reason", "outcome", "started_at", "finished_at", "tokens_before", "tokens_after", "leaf_summaries",
    "condensed_summaries", "redone_summaries", "details",
)  # fmt: skip
_BOUNDARY = ("host_reference", "last_seq", "recorded_at", "metadata")
_MOMENTS = ("started_at", "finished_at", "recorded_at")


class RunSection:
    """The runs that have ended: one at work is not history yet."""

    kind = "run"

    def lines(self, conversation_id: int) -> Iterator[Line]:
        runs = CompactionRun.objects.filter(conversation_id=conversation_id).exclude(outcome=Outcome.RUNNING)
        for values in runs.order_by("started_at", "run_id").values(*_RUN).iterator():
            yield {"type": self.kind, **_as_line(values)}

    def restore(self, conversation_id: int, lines: Sequence[Line]) -> None:
        CompactionRun.objects.bulk_create(
            CompactionRun(conversation_id=conversation_id, **_read(line, _RUN)) for line in lines
        )


class BoundarySection:
    """The hosts' boundaries."""

    kind = "boundary"

    def lines(self, conversation_id: int) -> Iterator[Line]:
        boundaries = CompactionBoundary.objects.filter(conversation_id=conversation_id)
        for values in boundaries.order_by("recorded_at", "last_seq", "host_reference").values(*_BOUNDARY).iterator():
            yield {"type": self.kind, **_as_line(values)}

    def restore(self, conversation_id: int, lines: Sequence[Line]) -> None:
        CompactionBoundary.objects.bulk_create(
            CompactionBoundary(conversation_id=conversation_id, **_read(line, _BOUNDARY)) for line in lines
        )


SECTIONS = (RunSection(), BoundarySection())


def _as_line(values: dict[str, Any]) -> Line:
    return {name: as_text(value) if isinstance(value, datetime) else value for name, value in values.items()}


def _read(line: Line, names: Sequence[str]) -> Line:
    return {
        name: datetime.fromisoformat(line[name]) if name in _MOMENTS and line[name] is not None else line[name]
        for name in names
    }
