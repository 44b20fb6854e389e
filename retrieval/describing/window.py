"""Read a window of the lineage: the items between two seqs, now or after a run.

The result is for drawings. Messages are listed one by one only if there are few. Summaries are listed one by one only
if they are wide enough to be drawn separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from compaction.background.jobs import decide_on_one
from compaction.policy import CompactionPolicy
from compaction.types import BoundaryRecord, CompactionDecision, Outcome, Reason
from conversations.content.lossless_values import is_storable
from conversations.errors import Invalid, NotFound
from conversations.models import Conversation
from conversations.sql import load, rows, snapshot
from conversations.store.paths import WHOLE, path_at
from conversations.types import ConversationRecord, Level, Role
from retrieval.describing.lineage import boundaries_of
from retrieval.describing.summary_outlines import STATEMENTS, records_of
from retrieval.reader import Reader
from retrieval.types import MessageSpan

# If a window has more messages, they are not listed.
MOST_MESSAGES = 400
MOST_RUNS = 1_000
# The width of a bundle, in columns of the drawing: wide enough to point at it with a mouse.
BUNDLED_PARTS = 8

_SQL = load("retrieval/lineage_window.sql")
_OF_RUN = "SELECT max(created_at) FROM summaries WHERE conversation_id = %(conversation_id)s AND run_id = %(run)s"


@dataclass(frozen=True)
class WindowSummary:
    """A summary that overlaps the window.

    `active`: it is in the active context at that moment. `superseded`: a newer summary of the same sources replaced it.
    """

    summary_id: str
    depth: int
    first_seq: int
    last_seq: int
    token_count: int
    source_tokens: int
    level: Level
    confidence: float
    confidence_reason: str
    retention: float | None
    is_degraded: bool
    active: bool
    superseded: bool
    run_id: str
    created_at: datetime


@dataclass(frozen=True)
class WindowBundle:
    """Adjacent summaries of one depth that are too narrow to be drawn one by one.

    `token_count` is that of the largest; `messages` are the messages they cover, `source_tokens` their sources' tokens.
    """

    depth: int
    first_seq: int
    last_seq: int
    summaries: int
    token_count: int
    source_tokens: int
    messages: int


@dataclass(frozen=True)
class WindowMessage:
    """A message of a narrow window; `raw`: no summary covered it at that moment."""

    message_id: int
    seq: int
    role: Role
    token_count: int
    raw: bool


@dataclass(frozen=True)
class WindowRun:
    """A compaction run that made summaries, and the last seq that these cover."""

    run_id: str
    finished_at: datetime
    last_seq: int
    summaries: int
    reason: Reason | None
    outcome: Outcome | None


@dataclass(frozen=True)
class LineageWindow:
    """The items between two seqs of a conversation, at a moment.

    The window is from `first_seq` to `last_seq`; `message_count` messages existed at that moment. The fresh tail, which
    is not summarized, begins at `tail_from_seq`. `raw` are the ranges that no summary covered. `messages` is absent if
    there are too many to list. `runs` are the newest runs that made summaries, oldest first, independent of the window
    and the moment. `bundles` replace summaries that are too narrow for the resolution.
    """

    conversation: ConversationRecord
    pressure: CompactionDecision
    first_seq: int
    last_seq: int
    message_count: int
    tail_from_seq: int
    summaries: tuple[WindowSummary, ...]
    raw: tuple[MessageSpan, ...]
    messages: tuple[WindowMessage, ...] | None
    runs: tuple[WindowRun, ...]
    boundaries: tuple[BoundaryRecord, ...] = ()
    bundles: tuple[WindowBundle, ...] = ()
    as_of_run: str | None = None


@dataclass(frozen=True)
class WindowReader(Reader):
    """Reads windows of the lineage."""

    def lineage_window(
        self,
        *,
        conversation_id: int,
        from_seq: int | None = None,
        to_seq: int | None = None,
        as_of_run: str | None = None,
        with_messages: bool = True,
        resolution: int | None = None,
    ) -> LineageWindow:
        """Read the lineage between two seqs: summaries and messages not summarized.

        Default: the whole conversation. In a small window, single messages are listed. `as_of_run` reads the lineage as
        it was at the end of that run. `resolution` is the number of columns of a drawing: summaries that are narrower
        than one column and not in the active context are returned in bundles. Raises NotFound; Invalid if `to_seq` is
        before `from_seq`.
        """
        with snapshot():
            conversation = self.scope.conversation(conversation_id)
            time, count = _moment(conversation, as_of_run)
            first, last = max(1, from_seq or 1), max(1, min(to_seq or count, count))
            if first > last:
                raise Invalid(
                    f"from_seq must not be after to_seq, and both must be from 1 to {count}; not {first} to {last}."
                )
            # The number of messages in one column of the drawing. A narrower summary is not listed separately.
            least = 1 if resolution is None else -(-(last - first + 1) // resolution)
            path = WHOLE if time is None or not conversation.moves else path_at(conversation_id, time)
            values = {
                **path.values,
                "conversation_id": conversation_id,
                "from": first,
                "upto": last,
                "time": time,
                "most": MOST_RUNS,
                "least": least,
                "bundle_width": least * BUNDLED_PARTS,
            }
            seen = _SQL["active_now"] if time is None else STATEMENTS["active_then"]
            is_single = _SQL["is_single"].format(seen=seen)
            summaries = _SQL["summaries"].format(seen=seen, among=f"AND ({is_single})" if least > 1 else "")
            bundles = rows(_SQL["bundles"].format(is_single=is_single), values) if least > 1 else []
            raw_spans = STATEMENTS["raw_spans"] if time is None else _SQL["raw_then"]
            raw = tuple(MessageSpan(*row) for row in rows(raw_spans, values))
            is_narrow = with_messages and last - first < MOST_MESSAGES
            policy = CompactionPolicy.from_settings()
            return LineageWindow(
                conversation=conversation.as_record(),
                pressure=decide_on_one(conversation, policy),
                first_seq=first,
                last_seq=last,
                message_count=count,
                tail_from_seq=max(1, count - policy.overridden(conversation.overrides).fresh_tail_count + 1),
                summaries=records_of(WindowSummary, rows(summaries, values)),
                raw=raw if count else (),
                messages=_messages(values, raw) if is_narrow else None,
                runs=records_of(WindowRun, rows(_SQL["runs"], values)),
                boundaries=boundaries_of(conversation),
                bundles=tuple(WindowBundle(*row) for row in bundles),
                as_of_run=as_of_run,
            )


def _moment(conversation: Conversation, as_of_run: str | None) -> tuple[datetime | None, int]:
    """The end of the run and the last seq at that time; for now, None and the last."""
    if as_of_run is None:
        return None, conversation.counters.message_count
    values: dict[str, Any] = {"conversation_id": conversation.pk, "run": as_of_run}
    [[time]] = rows(_OF_RUN, values) if is_storable(as_of_run) else [[None]]
    if time is None:
        raise NotFound(f"There is no run {as_of_run[:80]!r} of this conversation that has made a summary.")
    found = rows(_SQL["last_message_then"], {**values, "time": time})
    return time, found[0][0] if found else 0


def _messages(values: dict[str, Any], raw: Sequence[MessageSpan]) -> tuple[WindowMessage, ...]:
    is_raw = {seq for span in raw for seq in range(span.first_seq, span.last_seq + 1)}
    return records_of(WindowMessage, ((*row, row[1] in is_raw) for row in rows(_SQL["messages"], values)))
