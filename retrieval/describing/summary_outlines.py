"""Outlines: summaries without their text, and the statements that give them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from conversations.fast.records import record
from conversations.sql import load
from conversations.types import Level, SummaryKind
from retrieval.types import SummaryOutline

_SQL = load("retrieval/describe.sql")
# `{outline}` and `{derived}` in a statement are the pieces of that name.
STATEMENTS = {
    name: statement.replace("{outline}", _SQL["outline"]).replace("{derived}", _SQL["derived"])
    for name, statement in _SQL.items()
}

_KINDS = {kind.value: kind for kind in SummaryKind}
_LEVELS = {level.value: level for level in Level}


def outline(row: Sequence[Any]) -> SummaryOutline:
    """Make an outline from a row; its times come as text."""
    (
        summary_id, kind, depth, tokens, opening, first, last, earliest, latest, messages, level, has_derived, later,
        distance,
    ) = row  # fmt: skip
    values = {
        "summary_id": summary_id,
        "kind": _KINDS[kind],
        "depth": depth,
        "token_count": tokens,
        "opening_tokens": opening,
        "first_seq": first,
        "last_seq": last,
        "earliest_at": datetime.fromisoformat(earliest),
        "latest_at": datetime.fromisoformat(latest),
        "descendant_count": messages,
        "level": _LEVELS[level],
        "active": not has_derived and later is None,
        "distance": distance,
        "superseded_by": later,
    }
    return record(SummaryOutline, values)


def in_order(outlines: Iterable[SummaryOutline]) -> list[SummaryOutline]:
    """Sort by first seq, the widest first, each summary once, at its nearest."""
    nearest: dict[str, SummaryOutline] = {}
    for each in sorted(outlines, key=lambda each: abs(each.distance)):
        nearest.setdefault(each.summary_id, each)
    return sorted(nearest.values(), key=lambda each: (each.first_seq, -each.depth, each.summary_id))


def way_up(outlines: Iterable[SummaryOutline]) -> list[SummaryOutline]:
    """The nearest first."""
    return sorted(in_order(outlines), key=lambda each: -each.distance)
