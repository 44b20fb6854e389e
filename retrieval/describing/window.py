"""A window on the lineage of a conversation: what stands between two seqs, now or when a run was through.

Made for pictures: whatever the length of the history, a window costs a few short statements, and single messages are
told only where there are few.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from compaction.policy import CompactionPolicy
from compaction.types import Outcome, Reason
from conversations.errors import Invalid, NotFound
from conversations.exactness import is_storable
from conversations.models import Conversation
from conversations.reading import rows, snapshot
from conversations.records import ROLES
from conversations.scope import Scope
from conversations.types import Level
from retrieval.describing.window_types import LineageWindow, WindowMessage, WindowRun, WindowSummary
from retrieval.types import MessageSpan

# More than this in a window, and they are not told one by one.
MOST_MESSAGES = 400
MOST_RUNS = 1_000

_RUNS = """
    SELECT made.run_id, made.finished_at, made.last_seq, made.summaries, r.reason, r.outcome
    FROM (
        SELECT s.run_id, max(s.created_at) AS finished_at, max(s.last_seq) AS last_seq, count(*) AS summaries
        FROM summaries s WHERE s.conversation_id = %(id)s GROUP BY s.run_id ORDER BY 2 DESC LIMIT %(most)s
    ) AS made
    LEFT JOIN compaction_runs r ON r.run_id = made.run_id
    ORDER BY 2, 1
"""
_OF_RUN = "SELECT max(created_at) FROM summaries WHERE conversation_id = %(id)s AND run_id = %(run)s"
_MESSAGES_THEN = """
    SELECT m.seq FROM messages m WHERE m.conversation_id = %(id)s AND m.recorded_at <= %(time)s
    ORDER BY m.seq DESC LIMIT 1
"""
# When each came to be a source of another, or was superseded: before the moment asked for, it was not active any more.
_SUMMARIES = """
    SELECT s.summary_id, s.depth, s.first_seq, s.last_seq, s.token_count, s.source_tokens, s.level, s.retention,
           s.is_degraded, s.run_id, s.created_at,
           (SELECT min(d.created_at) FROM summary_parents p JOIN summaries d ON d.summary_id = p.summary_id
            WHERE p.parent_summary_id = s.summary_id),
           (SELECT later.created_at FROM summaries later WHERE later.supersedes_id = s.summary_id),
           EXISTS (SELECT FROM context_items c WHERE c.summary_id = s.summary_id)
    FROM summaries s
    WHERE s.conversation_id = %(id)s AND s.first_seq <= %(last)s AND s.last_seq >= %(first)s
      AND (%(time)s::timestamptz IS NULL OR s.created_at <= %(time)s)
    ORDER BY s.depth, s.first_seq, s.created_at
"""
# Messages that follow each other have the same difference between their seq and their number in the list.
_RAW_NOW = """
    SELECT min(ordinal), max(ordinal)
    FROM (
        SELECT ordinal, ordinal - row_number() OVER (ORDER BY ordinal) AS island
        FROM context_items
        WHERE conversation_id = %(id)s AND item_type = 'message' AND ordinal BETWEEN %(first)s AND %(last)s
    ) AS raw
    GROUP BY island ORDER BY 1
"""
_RAW_THEN = """
    SELECT min(seq), max(seq)
    FROM (
        SELECT m.seq, m.seq - row_number() OVER (ORDER BY m.seq) AS island
        FROM messages m
        WHERE m.conversation_id = %(id)s AND m.seq BETWEEN %(first)s AND %(last)s AND NOT EXISTS (
            SELECT FROM summary_messages l JOIN summaries s ON s.summary_id = l.summary_id
            WHERE l.message_id = m.message_id AND s.created_at <= %(time)s
        )
    ) AS raw
    GROUP BY island ORDER BY 1
"""
_MESSAGES = """
    SELECT message_id, seq, role::text, token_count FROM messages
    WHERE conversation_id = %(id)s AND seq BETWEEN %(first)s AND %(last)s ORDER BY seq
"""


def lineage_window(
    *, conversation_id: int, from_seq: int | None, to_seq: int | None, as_of_run: str | None, scope: Scope
) -> LineageWindow:
    """See `RetrievalEngine.lineage_window`: at most eight statements, whatever the size."""
    with snapshot():
        conversation = scope.conversation(conversation_id)
        time, count = _moment(conversation, as_of_run)
        first, last = max(1, from_seq or 1), max(1, min(to_seq or count, count))
        if first > last:
            raise Invalid(
                f"A window goes from an earlier seq to a later one, within 1 to {count}; not {first} to {last}."
            )
        values = {"id": conversation_id, "first": first, "last": last, "time": time, "most": MOST_RUNS}
        raw = tuple(MessageSpan(*row) for row in rows(_RAW_NOW if time is None else _RAW_THEN, values)) if count else ()
        tail = CompactionPolicy.from_settings().overridden(conversation.overrides).fresh_tail_count
        return LineageWindow(
            conversation_id=conversation_id,
            first_seq=first,
            last_seq=last,
            message_count=count,
            tail_from_seq=max(1, count - tail + 1),
            summaries=tuple(_summary(row, time) for row in rows(_SUMMARIES, values)),
            raw=raw,
            messages=_messages(values, raw) if last - first < MOST_MESSAGES else None,
            runs=tuple(_run(row) for row in rows(_RUNS, values)),
            boundaries=tuple(each.as_record() for each in conversation.boundaries.order_by("last_seq", "boundary_id")),
            as_of_run=as_of_run,
        )


def _moment(conversation: Conversation, as_of_run: str | None) -> tuple[datetime | None, int]:
    """When the run was through, and how many messages there were; no time, and all, for now."""
    if as_of_run is None:
        return None, conversation.counters.message_count
    values: dict[str, Any] = {"id": conversation.pk, "run": as_of_run}
    [[time]] = rows(_OF_RUN, values) if is_storable(as_of_run) else [[None]]
    if time is None:
        raise NotFound(f"There is no run {as_of_run[:80]!r} of this conversation that has made a summary.")
    found = rows(_MESSAGES_THEN, {**values, "time": time})
    return time, found[0][0] if found else 0


def _summary(row: tuple[Any, ...], time: datetime | None) -> WindowSummary:
    *told, run_id, created_at, derived_at, superseded_at, is_shown = row
    superseded = superseded_at is not None and (time is None or superseded_at <= time)
    merged = derived_at is not None and (time is None or derived_at <= time)
    return WindowSummary(
        summary_id=told[0],
        depth=told[1],
        first_seq=told[2],
        last_seq=told[3],
        token_count=told[4],
        source_tokens=told[5],
        level=Level(told[6]),
        retention=told[7],
        is_degraded=told[8],
        active=is_shown if time is None else not (merged or superseded),
        superseded=superseded,
        run_id=run_id,
        created_at=created_at,
    )


def _messages(values: dict[str, Any], raw: Sequence[MessageSpan]) -> tuple[WindowMessage, ...]:
    is_raw = {seq for span in raw for seq in range(span.first_seq, span.last_seq + 1)}
    return tuple(
        WindowMessage(message_id=id, seq=seq, role=ROLES[role], token_count=tokens, raw=seq in is_raw)
        for id, seq, role, tokens in rows(_MESSAGES, values)
    )


def _run(row: tuple[Any, ...]) -> WindowRun:
    run_id, finished_at, last_seq, summaries, reason, outcome = row
    return WindowRun(
        run_id=run_id,
        finished_at=finished_at,
        last_seq=last_seq,
        summaries=summaries,
        reason=None if reason is None else Reason(reason),
        outcome=None if outcome is None else Outcome(outcome),
    )
