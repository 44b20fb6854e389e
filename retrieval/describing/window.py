"""Read a window on the lineage: what stands between two seqs, now or after a run.

Made for pictures: whatever the length of the history, a window costs three short statements, single messages are listed
only where there are few, and single summaries only where a picture can show them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

from compaction.policy import CompactionPolicy
from compaction.types import BoundaryRecord, Outcome, Reason
from conversations.content.lossless_values import is_storable
from conversations.errors import Invalid, NotFound
from conversations.models import Conversation
from conversations.scope import Scope
from conversations.sql import load, rows, snapshot
from conversations.store.read import ROLES
from conversations.types import Level
from retrieval.describing.window_types import LineageWindow, WindowBundle, WindowMessage, WindowRun, WindowSummary
from retrieval.types import MessageSpan

# More messages than this in a window are not listed one by one.
MOST_MESSAGES = 400
MOST_RUNS = 1_000
# A bundle is at most so many of the parts wide that can be told apart: wide enough to be pointed at, and few enough.
BUNDLED_PARTS = 8

_SQL = load("retrieval/lineage_window.sql")
_OF_RUN = "SELECT max(created_at) FROM summaries WHERE conversation_id = %(id)s AND run_id = %(run)s"


def lineage_window(
    *,
    conversation_id: int,
    from_seq: int | None,
    to_seq: int | None,
    as_of_run: str | None,
    with_messages: bool,
    resolution: int | None,
    scope: Scope,
) -> LineageWindow:
    """See `RetrievalEngine.lineage_window`: three statements, whatever the size; two more for a moment of the past."""
    with snapshot():
        conversation = scope.conversation(conversation_id)
        time, count = _moment(conversation, as_of_run)
        first, last = max(1, from_seq or 1), max(1, min(to_seq or count, count))
        if first > last:
            raise Invalid(
                f"A window goes from an earlier seq to a later one, within 1 to {count}; not {first} to {last}."
            )
        # So many messages a summary must stand for to be as wide as one of the parts that can be told apart.
        least = 1 if resolution is None else -(-(last - first + 1) // resolution)
        values = {"id": conversation_id, "first": first, "last": last, "time": time, "most": MOST_RUNS, "least": least}
        values["bundle_width"] = least * BUNDLED_PARTS
        groups = _grouped(_statement(is_past=time is not None, is_bundled=least > 1), values)
        policy = CompactionPolicy.from_settings().overridden(conversation.overrides)
        raw = tuple(MessageSpan(*row) for row in sorted(groups["raw"])) if count else ()
        is_narrow = with_messages and last - first < MOST_MESSAGES
        return LineageWindow(
            conversation=conversation.as_record(),
            pressure=policy.decide(conversation_id, conversation.counters),
            first_seq=first,
            last_seq=last,
            message_count=count,
            tail_from_seq=max(1, count - policy.fresh_tail_count + 1),
            summaries=tuple(sorted((_summary(row, time) for row in groups["summary"]), key=_in_order)),
            raw=raw,
            messages=_messages(values, raw) if is_narrow else None,
            runs=tuple(sorted((_run(row) for row in groups["run"]), key=lambda run: (run.finished_at, run.run_id))),
            boundaries=tuple(_boundary(conversation_id, row) for row in groups["boundary"]),
            bundles=tuple(WindowBundle(*row) for row in sorted(groups["bundle"])),
            as_of_run=as_of_run,
        )


def _grouped(statement: str, values: dict[str, Any]) -> dict[str, list[Any]]:
    """The rows of a combined statement, by the name of the query they come from."""
    groups: dict[str, list[Any]] = {"summary": [], "bundle": [], "raw": [], "run": [], "boundary": []}
    for name, row in rows(statement, values):
        groups[name].append(row)
    return groups


def _together(**queries: str) -> str:
    """Combine queries into one statement."""
    return " UNION ALL ".join(
        f"(SELECT '{name}', (SELECT json_agg(value ORDER BY place) FROM json_each(row_to_json(query))"
        f" WITH ORDINALITY AS each(key, value, place)) FROM ({query}) AS query)"
        for name, query in queries.items()
    )


@cache
def _statement(*, is_past: bool, is_bundled: bool) -> str:
    raw = _SQL["raw_then"] if is_past else _SQL["raw_now"]
    if not is_bundled:
        return _together(summary=_SQL["summaries"], raw=raw, run=_SQL["runs"], boundary=_SQL["boundaries"])
    is_single = _SQL["is_single"].format(seen=_SQL["active_then"] if is_past else _SQL["active_now"])
    summaries, bundles = _SQL["summaries"], _SQL["bundles"].format(is_single=is_single)
    return _together(
        summary=f"{summaries} AND ({is_single})", bundle=bundles, raw=raw, run=_SQL["runs"], boundary=_SQL["boundaries"]
    )


def _moment(conversation: Conversation, as_of_run: str | None) -> tuple[datetime | None, int]:
    """When the run was through, and how many messages there were; no time, and all, for now."""
    if as_of_run is None:
        return None, conversation.counters.message_count
    values: dict[str, Any] = {"id": conversation.pk, "run": as_of_run}
    [[time]] = rows(_OF_RUN, values) if is_storable(as_of_run) else [[None]]
    if time is None:
        raise NotFound(f"There is no run {as_of_run[:80]!r} of this conversation that has made a summary.")
    found = rows(_SQL["last_message_then"], {**values, "time": time})
    return time, found[0][0] if found else 0


def _summary(row: list[Any], time: datetime | None) -> WindowSummary:
    *figures, run_id, created_at, derived_at, superseded_at, is_shown = row
    derived_at, superseded_at = _time(derived_at), _time(superseded_at)
    superseded = superseded_at is not None and (time is None or superseded_at <= time)
    merged = derived_at is not None and (time is None or derived_at <= time)
    return WindowSummary(
        summary_id=figures[0],
        depth=figures[1],
        first_seq=figures[2],
        last_seq=figures[3],
        token_count=figures[4],
        source_tokens=figures[5],
        level=Level(figures[6]),
        retention=figures[7],
        is_degraded=figures[8],
        active=is_shown if time is None else not (merged or superseded),
        superseded=superseded,
        run_id=run_id,
        created_at=_moment_of(created_at),
    )


def _messages(values: dict[str, Any], raw: Sequence[MessageSpan]) -> tuple[WindowMessage, ...]:
    is_raw = {seq for span in raw for seq in range(span.first_seq, span.last_seq + 1)}
    return tuple(
        WindowMessage(message_id=id, seq=seq, role=ROLES[role], token_count=tokens, raw=seq in is_raw)
        for id, seq, role, tokens in rows(_SQL["messages"], values)
    )


def _run(row: list[Any]) -> WindowRun:
    run_id, finished_at, last_seq, summaries, reason, outcome = row
    return WindowRun(
        run_id=run_id,
        finished_at=_moment_of(finished_at),
        last_seq=last_seq,
        summaries=summaries,
        reason=None if reason is None else Reason(reason),
        outcome=None if outcome is None else Outcome(outcome),
    )


def _boundary(conversation_id: int, row: list[Any]) -> BoundaryRecord:
    host_reference, last_seq, recorded_at, metadata = row
    return BoundaryRecord(
        conversation_id=conversation_id,
        host_reference=host_reference,
        last_seq=last_seq,
        recorded_at=_moment_of(recorded_at),
        metadata=metadata,
    )


def _time(text: str | None) -> datetime | None:
    return None if text is None else _moment_of(text)


def _moment_of(text: str) -> datetime:
    """A time as JSON says it."""
    return datetime.fromisoformat(text)


def _in_order(summary: WindowSummary) -> tuple[int, int, datetime]:
    return summary.depth, summary.first_seq, summary.created_at
